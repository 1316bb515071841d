// The document that Python writes; docs/document-format.md describes it.

export interface Source { file: string; line: number; function: string; text: string }
export interface Call { scope: string; name: string; of: string; formula: string; source: number | null }
export interface Rule { forward: string; back: (string | null)[] }

export type Role = "input" | "parameter" | "constant" | "forward" | "gradient" | "update";
export type Num = number | "nan" | "inf" | "-inf";
export type Change = "same" | "added" | "changed" | "moved" | "removed";

export interface NodeRecord {
  id: number; op: string; family: string; name: string; variable: string; attrs: string; type: string; shape: string;
  scope: string; source: number | null; origin: number | null; inputs: number[]; role: Role;
  order: number; outputs: number[]; computed: boolean; rule: number | null; body: number | null;
  gradient?: number | null; change?: Change; was?: string; differs?: string[];
}

/** An array as a picture: the cells of tiles as float16 in base64, to be multiplied by `scale`. */
export interface HeatMap { shape: number[]; cells: number[]; block: number[]; scale: number; f16: string }

export interface Summary {
  data?: (Num | boolean)[]; size?: number; min?: number; max?: number; mean?: number; std?: number; norm?: number;
  zeros?: number; hist?: number[]; nan?: number; inf?: number; bad?: number[]; map?: HeatMap;
}

// [slot, the input, the contribution, the sum so far]
export type Part = [number, number, number, number];
export interface Step { node: number; upstream: number | null; parts: Part[] }

export interface Kernel {
  nodes: number[]; text: string; ops: string; bytes: number | null; operations: number | null;
  least_ns: number | null; ns: number | null; band: number;
}

export interface Arena { times: number[]; peak: number; buffers: { name: string; node: number | null; first: number; last: number; bytes: number }[] }

export interface Member { parameter: number; gradient: number; nodes: number[] }
export interface Updates { nodes: number[]; rules: { name: string; members: Member[] }[] }

// Norms over the steps of a run, by id of the parameter.
export interface Run { steps: number[]; parameters: Record<string, Record<string, (Num | null)[]>> }

// What rounding does at a node: decimal digits that it loses and leaves, its part in a bound.
export interface Rounding { lost: Num; digits: Num; share: Num; condition: Num; kind: string; count: number; spread?: Summary }

export interface Problem { node: number; title: string; text: string; remedy: string }

export interface GraphDocument {
  format: string; version: number; name: string; nodes: NodeRecord[]; inputs: number[];
  outputs: number[]; output_names: string[]; ops: Record<string, number>; sources: Source[];
  rules: Rule[]; calls?: Call[]; words?: Record<string, string>; values?: Record<string, Summary>; steps?: Step[]; kernels?: Kernel[];
  arena?: Arena; focus?: number | null; problem?: Problem; note?: string; compared?: string[]; updates?: Updates; run?: Run; rounding?: Record<string, Rounding>; differences?: { node: number; relative: Num; largest: Num }[]; onnx?: { model?: string; refused?: string };
}
