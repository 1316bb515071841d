"""Collectives in the text of compiled programs."""

from retrograd.distributed.hlo import Collective, collectives

TEXT = """HloModule jit_step, num_partitions=4

%body (p: (s64[], f32[2,8])) -> (s64[], f32[2,8]) {
  %c = f32[2,8]{1,0} collective-permute(%x), channel_id=1, source_target_pairs={{0,1},{1,2},{2,3}}
  ROOT %t = (s64[], f32[2,8]{1,0}) tuple(%i, %c)
}

%cond (p: (s64[], f32[2,8])) -> pred[] {
  ROOT %lt = pred[] compare(%i, %n), direction=LT
}

ENTRY %main (x: f32[8,4]) -> f32[6] {
  %all-reduce = f32[4,6]{1,0} all-reduce(%dot), channel_id=1, replica_groups={{0,1},{2,3}}
  %all-reduce.1 = (f32[6]{0}, bf16[6]{0}) all-reduce(%a, %b), replica_groups=[1,4]<=[4], to_apply=%s
  %r.2 = f32[6]{0} all-reduce(%w), replica_groups=mesh['axis_0'=2,'axis_1'=1,'axis_2'=2] {'axis_0'}
  %ag = (f32[2]{0}, f32[8]{0}) all-gather-start(%v), replica_groups=[1,4]<=[4], dimensions={0}
  %agd = f32[8]{0} all-gather-done(%ag)
  %rs = f32[2]{0} reduce-scatter(%v), replica_groups=[1,4]<=[4], dimensions={0}
  %w = (s64[], /*index=1*/f32[2,8]{1,0}) while(%t), condition=%cond, body=%body, \
backend_config={"known_trip_count":{"n":"5"}}
  ROOT %f = f32[6]{0} fusion(%r.2), kind=kLoop, calls=%fused
}
"""


def test_kinds_bytes_groups_and_loops():
    assert sorted(collectives(TEXT), key=str) == sorted(
        [
            Collective("all-reduce", 96, 2),
            Collective("all-reduce", 36, 4),
            Collective("all-reduce", 24, 2),
            Collective("all-gather", 32, 4),
            Collective("reduce-scatter", 32, 4),
            Collective("collective-permute", 64, 3, 5),
        ],
        key=str,
    )
