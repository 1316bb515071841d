"""The numbers that decide: sizes of tiles, thresholds of time and memory, what caches hold.

They change how fast a program runs and what it needs, never its bits. All are fields of one record,
with their unit in the name, so that they can be looked over (`print(TUNING)`) and set together.
Guesses of time with them are made by `schedule/cost_model.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any


def number(value: float, meaning: str) -> Any:
    """A field of `Tuning`."""
    return field(default=value, metadata={"meaning": meaning})


@dataclass(init=False, repr=False, eq=False)  # what would be made of a hundred fields takes 5 ms
class Tuning:
    """The numbers, each with its meaning; `_ns` and `_s` are times, `_bytes` sizes in memory."""

    # fmt: off
    # Time of one thread. Measured on one machine, good enough to tell what is worth sharing.
    cheap_op_ns: float = number(0.03,
        "fusion and tiling: time of an element of a cheap operation, in a vector of floats")
    division_ns: float = number(0.15, "the same for a division")
    transcendental_ns: float = number(0.6, "the same for a function such as exp")
    multiply_add_ns: float = number(0.0125, "time of a multiply-add of a contraction")
    byte_ns: float = number(0.06, "time of a byte that is read or written")
    loop_step_ns: float = number(3.0, "time of a step of a loop")
    kernel_call_ns: float = number(2.0, "time of the call of a kernel inside of a loop")
    uncached_bytes: int = number(1 << 25, "a temporary of more has no place in any cache")
    interruptible_ns: float = number(20e6, "runs of more can be ended before they are done")
    assumed_size: int = number(1024, "what a named size is taken for, where its value is not known")
    sort_element_ns: float = number(8.0, "time of an element that is sorted")
    argsort_element_ns: float = number(15.0, "time of an element whose position in order is found")
    search_value_ns: float = number(60.0, "time of a value that is looked for in a sorted row")

    # Eager code that does not repeat.
    returned_runs: int = number(80,
        "nodes that each call of what starts at a line has to have taken, since it returned, until "
        "it is recorded: compiling takes several times as long, as what has returned so often goes "
        "on for longer; of k things k * k times as many, as each has a program and returns less "
        "often; twice as many each time that recordings did not return")
    call_nodes: int = number(10, "of which a call takes so many to be made")
    recorded_kinds: int = number(16,
        "different things that start at a line, return, and are recorded; of more, none is")
    likely_kinds: int = number(3,
        "of so many it is likely: programs of their calls are not compiled meanwhile")
    long_run_calls: int = number(4096,
        "calls after which they are recorded without having returned")
    unknown_recordings: int = number(3,
        "recordings in a row that were not all known, after which operations run at once again")
    remembered_runs: int = number(256, "runs of which the hash is remembered")
    looked_work: int = number(32,
        "calls, and elements as nodes, since the last look, at which a look ends a run")
    looks: int = number(8,
        "looks at a recording, of which it is asked whether few operations are between them")
    given_up: int = number(16,
        "times as often that what is looked at so often has to return until it is recorded again")
    looked_runs: int = number(256, "the same of a run that is looked at more often, and is dropped")
    joined_arrays: int = number(8, "arrays that a program joins, at most; else NumPy does")
    weight_shapes: int = number(16,
        "shapes of weights of a product that have programs of their own, at most")
    weight_nodes: int = number(8, "nodes that such a product takes, at least")
    remembered_calls: int = number(4096, "combinations of a call and of shapes with a program")

    along_nodes: int = number(40,
        "operations for one value that is computed along with what is looked at, at most")
    along_ratio: int = number(3, "times as much as for all those has to be computed anyway")

    # Fusion.
    kernel_nodes: int = number(120, "nodes in one kernel, at most")
    view_readers: int = number(6, "different indices, or kernels, that may read one view")
    recompute_bytes: int = number(1 << 20,
        "loading a value of a larger array takes longer than to compute a cheap one")
    recompute_nodes: int = number(8,
        "cheap nodes that are computed again, rather than to store the last of them")
    free_load_ratio: int = number(16, "an array so many times smaller is loaded at no cost")
    concat_parts: int = number(4, "a concat of more parts is copied part by part")
    concat_in_turn: int = number(4, "parts of single elements that are written in turn")
    fused_map_values: int = number(400,
        "scalar values in the body of a horizontally fused nest, roughly")
    fused_map_candidates: int = number(3, "nests of one domain that an elementwise node may join")

    # Loop nests and memory.
    scatter_slice_elements: int = number(32,
        "elements of a destination from which on threads share the destinations of a scatter: "
        "each thread looks at all positions, and cannot guess which are its own")
    far_scatter_slice_elements: int = number(16, "the same where the result is far from a core")
    far_scatter_bytes: int = number(1 << 21,
        "a result of a scatter of so many bytes is far from a core")
    gemm_pack_bytes: int = number(1 << 20, "memory of a thread for packed parts of matrices")
    gemm_totals_bytes: int = number(1 << 18, "and behind it for totals of groups of products")
    large_output_bytes: int = number(1 << 28,
        "a long loop does not keep an input and an output of more apart")
    freeing_ratio: int = number(8,
        "a kernel that reads so many times what it writes runs early, to free memory")
    prefetch_row_bytes: int = number(256, "shorter rows are not prefetched during a matrix product")
    kept_arena_layouts: int = number(256, "memory layouts of a plan that are kept, by sizes")
    shared_walk_ns: int = number(100_000,
        "threads may share the levels of a walk through a graph that takes longer")
    common_layout_size: int = number(1 << 13,
        "sizes up to this share memory layouts, several at once")

    # Tile groups.
    summing_elements: int = number(2,
        "sums over rows go element by element from so many elements on: one is for one thread")
    parallel_grain_ns: float = number(15_000, "threads share work from so much on")
    tile_grain_ns: float = number(20_000, "work of a tile, at least")
    tile_bytes: int = number(1 << 19, "bytes that a tile may touch")
    tile_result_bytes: int = number(1 << 22,
        "bytes of one result in a tile that no cache near by holds")
    row_split_bytes: int = number(1 << 19, "a larger row is cut further")
    sum_columns: int = number(64, "columns that a tile of a sum of columns adds up, at least")
    narrow_sum_columns: int = number(32, "the same where there would be no two tiles")
    group_rows: int = number(8, "rows of a tile group of several kernels, at least")
    short_row_bytes: int = number(64, "a shorter row is as well in memory as in the cache")
    gemm_tile_rows: int = number(64, "rows of a tile of a matrix product, at least")
    narrow_gemm_columns: int = number(48,
        "columns of a product up to which a tile reads its left matrix from where it is")
    strip_gemm_columns: int = number(256,
        "the same where the rows of that matrix share places in the caches")
    group_kernels: int = number(200,
        "kernels of a tile group, at most: the time to compile its loop grows faster than they do")
    overtaken_kernels: int = number(40,
        "kernels that may be overtaken by one that joins a tile group")
    remat_time_ratio: float = number(8,
        "large results are computed again in up to so many times the time that it takes to write "
        "and read them")
    remat_memory_ratio: float = number(2,
        "and if they are so many times as large as what has to be kept for it")

    # Kernels.
    gemm_vector_columns: int = number(16, "columns of a vector, at most")
    masked_row_elements: int = number(128,
        "shorter rows are computed throughout, whatever a mask hides of them")
    poll_elements: int = number(1 << 16,
        "elements of a nest after which it looks whether the run is to stop")
    streamed_bytes: int = number(1 << 18,
        "size of a matrix from which few rows are multiplied with it along its columns")
    streamed_rows: int = number(8, "rows of it that are read at once then")
    streamed_columns: int = number(4096, "columns whose sums wait in the cache meanwhile, at most")
    streamed_tile_columns: int = number(1024, "columns that a tile of these has, at least")
    column_values: int = number(6,
        "values of a sum of columns up to which four vectors of columns are added up at once")
    short_body_values: int = number(80,
        "values of a nest whose last lanes are written for vectors of two sizes")

    # Matrix products.
    gemm_depth_bytes: int = number(2048,
        "bytes of a column of a packed block of the right matrix; up to four times as many where"
        " it is narrow, so that rows of the left one are read in one go; fewer where those are "
        "not contiguous")
    cache_line_bytes: int = number(64, "bytes that are fetched at once")
    gemm_copy_stride_bytes: int = number(1024,
        "columns of the left matrix that lie so far apart are copied")
    gemm_few_rows: int = number(64,
        "rows of a product up to which its right matrix is read where it is, if rows of that are "
        "contiguous")
    gemm_few_crowded_rows: int = number(128,
        "the same where its rows are as long as the next number, or a multiple of it: they share "
        "places in caches, and take longer to copy")
    gemm_near_row_bytes: int = number(2048,
        "the same for any number of rows, where its own are shorter; of others, one block of "
        "products at a time is read")
    gemm_panel_steps: int = number(8,
        "rows of a panel of the right matrix that are fetched ahead of those in use")
    windows_rows: int = number(6,
        "rows of a result from which on windows are read where the image lies, not laid out")
    windows_row: int = number(5,
        "and elements of a row of the result: a vector has parts of a few rows, at most")
    windows_columns: int = number(100,
        "columns of a result from which on there is one for each image, not one for all")
    windows_depth: int = number(128,
        "products for which a panel of windows is copied at a time, and stays in the first-level "
        "cache: whole blocks of products")
    windows_weight_bytes: int = number(1 << 19,
        "bytes of weights that stay in the second-level cache while the windows pass by")
    listed_columns: int = number(1 << 22,
        "columns of a left matrix whose offsets are listed, at most")
    listed_run: int = number(48,
        "elements side by side in them, at least, where it is no matrix of windows")
    zero_scan_steps: int = number(8, "steps of a product that are looked at together for zeros")
    small_gemm_elements: int = number(1 << 12,
        "elements of right matrices that are transposed together")
    small_gemm_rows: int = number(8,
        "sums side by side that take no longer than one waits for the next product")
    reads_of_table_rows: int = number(4,
        "times that rows of a table are read, on average, so that their products are tabulated")
    split_k_columns: int = number(240, "columns of a part of a product that is split along k")
    packed_once_products: int = number(4,
        "products of the same right matrix before which it is packed once")
    packed_once_rows: int = number(128, "rows of the left matrices of these, at most")

    # Routines.
    transpose_tile_rows: int = number(16, "rows and columns of what is transposed at a time")
    inverse_block_rows: int = number(32, "rows of a triangle that LAPACK inverts")
    recursive_inverse_rows: int = number(160,
        "triangles of more rows are inverted by halves, where numbers are real")
    reflected_columns: int = number(16,
        "right sides up to which reflections are applied one by one")
    unrolled_matrix_rows: int = number(6,
        "up to this size, where it is known, routines are straight code")
    factored_matrix_rows: int = number(16, "up to this size calling LAPACK to factor takes longer")
    solved_matrix_rows: int = number(12, "and to solve")
    looped_polynomial_terms: int = number(6,
        "coefficients of a polynomial from which on a loop is quicker to compile")

    # Programs.
    shared_level_ns: int = number(6_000, "threads share a level of a graph that takes longer")
    untabled_kernels: int = number(100, "kernels of a program that needs no launch table, at most")
    serial_path_kernels: int = number(100, "kernels of a way for one thread, at most")
    stop_poll_ns: float = number(2e6,
        "kernels that take longer look themselves whether the run is to stop")

    # Vectors and sorting.
    shuffle_bytes: int = number(16, "bytes of a part of a vector within which shuffles are fast")
    insertion_sort_words: int = number(40, "words up to which insertion is faster than radix")
    extremes_at_once: int = number(4, "vectors of extremes of one long row, side by side")
    long_row: int = number(1024, "elements of such a row")
    numpy_sort_elements: int = number(1000,
        "elements up to which NumPy sorts faster than a radix sort, on CPUs that compress slowly")
    radix_bits: int = number(8, "bits of a digit of the radix sort")
    sort_vector_elements: int = number(8, "elements of a vector of keys")
    top_k_vector_elements: int = number(32, "elements that are compared at once")
    top_k_inserted_words: int = number(24,
        "wanted words up to which each candidate takes its place at once")
    top_k_candidate_ratio: int = number(4, "else: times as many candidates as are wanted")
    top_k_row_ratio: int = number(2,
        "a row is so many times as long as the room for candidates, or it is sorted")

    # What is kept.
    disk_cache_bytes: int = number(256 << 20,
        "of a disk cache; beyond it, what was not used for longest is removed")
    disk_cache_kept_share: float = number(0.75, "of the limit, when something has to be removed")
    disk_block_bytes: int = number(4096, "bytes that a file takes at least")
    abandoned_file_s: int = number(3600, "then the unfinished file of another process is removed")
    kept_arena_bytes: int = number(1 << 18, "memory that may be kept for sizes not in use")
    gil_held_ns: int = number(30_000, "for so long a call may keep other threads of Python waiting")
    kept_frames: int = number(256,
        "combinations of named sizes whose memory layout is kept at hand")
    specialized_sizes: int = number(8,
        "sizes for which a program of many brief nodes is compiled before those that change get "
        "names")
    many_nodes: int = number(200, "nodes of a program of many")
    brief_node_ns: float = number(100.0,
        "nodes that take less, as predicted, are brief: loops over named sizes would cost more "
        "than what they do")
    named_programs: int = number(64,
        "programs of a jit function for sizes that have got names, of one kind of arguments")
    named_variants: int = number(4, "those of them that differ in what they assume of sizes alone")
    graph_families: int = number(256,
        "kinds of recorded graphs, which differ in sizes alone, of which programs are known")
    naming_attempts: int = number(16,
        "traces with names for sizes that may fail; then no more sizes get names")

    # Which executor runs a graph, and when it is compiled.
    background_idle_s: float = number(0.05,
        "the background compiler begins when nothing was interpreted for so long: somebody types,"
        " or computes otherwise")
    background_poll_s: float = number(0.005, "it looks so often whether the process ends, or forks")
    background_programs: int = number(64, "programs that wait for it; of more, those that ran last")
    hasty_product_work: int = number(1 << 28,
        "pairs of multiply-adds that code made in haste does while better code is compiled in the"
        " background; for more, a product waits for it")
    bytecode_operations: int = number(16_000,
        "so many operations take seconds to compile into one function")
    bytecode_elements: int = number(64,
        "elements that an operation makes, on average, if its call is what takes time")
    bytecode_repetition: int = number(16,
        "operations of each kind, on average, in a graph that becomes bytecode")
    bytecode_calls: int = number(1 << 19, "calls after which Python may look for signals")
    interpreted_nodes: int = number(200, "nodes that are interpreted before a program is compiled")
    interpreted_bytes: int = number(1 << 25,
        "bytes of an array inside of a program that is compiled at once, lest they are stored")
    interpreted_growth: int = number(4, "times as large as all that is given and returned it is")
    compiled_node: int = number(15,
        "nodes that take as long to interpret as one of a program of its own to compile")
    compiled_product: int = number(500, "and as a product of known sizes does")
    compiled_named_product: int = number(700, "or of sizes that are arguments")
    huge_nodes: int = number(3000, "graphs of more nodes take minutes to compile")
    huge_runs: int = number(4, "and so many runs to believe that they return")
    node_elements: int = number(20_000, "elements that take about as long as a node")
    draw_nodes: int = number(8,
        "nodes that take about as long to interpret and to compile as a draw")
    draw_operations: int = number(50, "operations that a proposal of a draw takes, about")
    waiting_nodes: int = number(64,
        "others may have to wait for what so many nodes take to compile, as there is one compiler")
    node_s: float = number(15e-6, "seconds of interpreting that count as a node")

    # Training loops.
    fit_report_s: float = number(0.1, "seconds of steps that `fit` does in one call, about")
    fit_looped_step_s: float = number(3e-3,
        "a step of more is a call of its own, which costs nothing beside it")
    fit_step_call_s: float = number(20e-6, "what a step costs more that is a call of its own")
    fit_loop_bytes: int = number(1 << 26, "batches that are stacked for one call, at most")
    fit_stacked_bytes: int = number(1 << 28, "a list of batches that is stacked at once, at most")
    fit_checked_bytes: int = number(1 << 20, "of an array, by which data is told from other data")
    fit_kept_bytes: int = number(1 << 28,
        "a model, with the state of its optimizer, up to which `fit` keeps an earlier one, to find "
        "out where a NaN in it came from")

    # The rest of the runtime.
    hashed_constant_bytes: int = number(1 << 24,
        "graphs with more bytes of constants are not kept on disk: hashing costs more than it "
        "saves")
    signal_poll_s: float = number(0.1, "a signal that another thread was given does not end a wait")
    spin_s: float = number(200e-6,
        "a waiting thread spins so long before it sleeps: what sleeping costs on a virtual "
        "machine, which gives the processor away, and about what tiles differ by")
    subnormal_calls: int = number(32,
        "calls of a program that met subnormal numbers, before it is tried out what they cost")
    subnormal_slowdown: float = number(1.5, "times as long that a call may take for their sake")
    subnormal_loss_s: float = number(1.0, "and seconds that they have cost, to be warned of")
    subnormal_trial_s: float = number(0.002, "seconds for which a call is tried out each way")
    crowded_spin_s: float = number(2e-6,
        "the same where threads outnumber processors, or others need them")

    assigned_bytes: int = number(1 << 14,
        "an array of more is changed in memory, for which what its elements become is computed")
    xla_checks_ahead: int = number(8,
        "calls in a row on xla that run before the checks of the first are waited for")
    xla_sizes_kept: int = number(64,
        "choices of named sizes whose programs a graph on xla keeps")

    # GPUs.
    cuda_block_threads: int = number(256, "threads of a kernel that run on one multiprocessor")
    cuda_busy_threads: int = number(1 << 15,
        "results that keep a GPU busy; sums of which there are fewer are computed in parts")
    cuda_scanned_blocks: int = number(32,
        "blocks of a row, above which rows too few to keep a GPU busy are scanned in parts")
    cuda_cublas: int = number(1,
        "matrix products of GPUs are cuBLAS's, where that is installed; 0: they are our own, with "
        "the bits of a processor's")
    cuda_cublas_bytes: int = number(1 << 25, "memory that cuBLAS works in")
    cuda_stacked_calls: int = number(64, "calls of cuBLAS for one stack of matrices, at most")
    cuda_captured_launches: int = number(1 << 14,
        "launches of a program of more are not made a graph of the driver's")
    cuda_graphs: int = number(16, "graphs of a program, each for other memory, that are kept")
    cuda_kept_bytes: int = number(1 << 30, "memory of a device that is kept for the next call")

    # Data.
    tokenizer_characters: int = number(1 << 16,
        "a text of more is cut into parts of about so many to be split into tokens in parallel")
    text_block_bytes: int = number(1 << 20, "bytes of a long text that are encoded together")
    shared_batch_bytes: int = number(1 << 15,
        "a batch of less goes from a worker process through a pipe, not through shared memory")
    shared_segments: int = number(64, "segments of shared memory of a worker process, at most")
    worker_poll_s: float = number(1.0, "it looks so often whether the other process is still there")
    worker_exit_s: float = number(2.0, "worker processes that are not needed may take so long")
    listed_indices: int = number(10_000_000,
        "indices of a sampler that a state of a loader may hold")
    fingerprint_rows: int = number(16, "rows of an array that tell it from another")
    onnx_unrolled_steps: int = number(64,
        "a loop of a model of at most so many steps is written out when it is read")
    onnx_reruns: int = number(256,
        "gradients that a model of ONNX may take of each other")
    onnx_unknown_sizes: int = number(16,
        "sizes in a model of ONNX that only a run knows, one after the other")
    cache_slots: int = number(64,
        "slots that a cache of keys and values has a multiple of, so that calls find a program")

    # Proofs.
    network_weights: int = number(1 << 26,
        "weights, zeros included, of a network that branch and bound takes")
    property_bytes: int = number(1 << 26, "bytes of a file with a property, unpacked")
    property_cases: int = number(1 << 16, "cases of a property once it is multiplied out")
    proof_batch: int = number(64, "cases of a proof that are bounded together")
    proof_inputs: int = number(12,
        "a network of at most so many inputs is split at inputs, of more at ReLUs")
    slope_rate: float = number(0.1, "step of Adam on the slopes of relaxed ReLUs")
    beta_rate: float = number(0.05, "the same on what is taken off arguments of decided ones")
    ascent_decay: float = number(0.97, "by which these steps shrink from one to the next")
    # Rounding (`rg.verify.rounding`).
    rounding_elements: int = number(32, "elements of an output whose bound is computed")
    rounding_samples: int = number(32, "runs of stochastic arithmetic, at least")
    rounding_sampled_nodes: int = number(8000, "nodes of all runs together, of short programs")
    rounding_exact_operations: int = number(300_000,
        "operations of a run that mpmath computes without being asked")
    rounding_lost_digits: float = number(1.0, "digits from which a node is said to lose some")
    rounding_share: float = number(0.05, "part of a bound from which a node counts")
    rounding_felt: float = number(0.02, "weight of a node from which it is listed")
    rounding_listed: int = number(8, "nodes of a table")
    rounding_gain: float = number(2.0, "factor by which the error of what is suggested is smaller")
    rounding_candidates: int = number(64, "rewritings that are evaluated")
    rounding_widened: int = number(3, "nodes, the worst, that are evaluated in a wider dtype")
    # fmt: on

    def __str__(self) -> str:
        width = max(len(f.name) for f in fields(self))
        return "\n".join(
            f"{f.name:{width}} {getattr(self, f.name):>12}  {f.metadata['meaning']}"
            for f in fields(self)
        )


TUNING = Tuning()
