/* Declares the types that the page's scripts share. Only the type checker reads this file, not the page. */

/** One line of a run's log, as `specdec/events.py` writes it. */
type LogEvent = { event: string; lane?: string; [key: string]: any };

/** What happened to a drafted token, or how the target's token was drawn. */
type State = "acc" | "rej" | "dis" | "cut" | "res" | "bon" | "pla";

type Candidate = { token: number; piece: string; prob: number };

/** The likeliest tokens of a distribution, and the summed probability of all others. */
type Distribution = {
  top: Candidate[];
  rest: number;
  entropy?: number;
  sample?: Candidate;
};

/** A drafted token of a cycle: the target's p, the drafter's q, and u, the random draw that decided. */
type Draft = {
  token: number;
  piece: string;
  status: string;
  state: State;
  level: number;
  parent: number;
  readyMs: number;
  text: string;
  p?: number;
  q?: number;
  u?: number;
  h?: number;
  overlap?: number;
  target?: Distribution;
  draft?: Distribution;
};

type TargetToken = {
  piece: string;
  text: string;
  token: number;
  state: State;
  distribution?: Distribution;
  p?: number;
};

type Totals = {
  tokens: number;
  accepted: number;
  judged: number;
  drafted: number;
  trees: number;
  draftMs: number;
  passMs: number;
  checks: number;
  checkMs: number;
};

/** One cycle. Times are milliseconds since the end of the lane's prefill. */
type Cycle = {
  number: number;
  drafting: { start: number; end: number; steps: number[] } | null;
  check: { start: number; end: number } | null;
  drafts: Draft[];
  targetToken: TargetToken | null;
  startMs: number;
  endMs: number;
  gained: number;
  served: boolean;
  tokens: number[];
  pieces: string[];
  texts: string[];
  bonus?: Distribution;
  tree: boolean;
  accepted: number;
  judged: number;
  totals: Totals;
};

type Lane = {
  name: string;
  started: LogEvent | null;
  prefillEnd: number | null;
  prefill:
    (Pick<Cycle, "pieces" | "texts" | "tokens"> & { distribution?: Distribution; p?: number; cycle?: Cycle }) | null;
  pending: { drafted?: LogEvent; verified?: LogEvent } | null;
  cycles: Cycle[];
  failures: LogEvent[];
  finished: LogEvent | null;
  endMs: number;
};

type Run = { header: LogEvent; names: string[]; lanes: Record<string, Lane>; closed: boolean };

/** The player of a page: a run, the moment of the run on show, and what other views use of the player. */
interface Player extends HTMLElement {
  words: any;
  run(): Run | null;
  log(): string;
  load(log: string, sent?: boolean): void;
  moment(): { t: number; settle: number; playing: boolean; slow: number; closed: boolean };
  show(moment: { t: number; settle?: number; playing?: boolean; slow?: number }): void;
  moveTo?(element: HTMLElement, props: any, watch: Watch, trigger: any): void;
  share?: any;
  wantedStep?: { cycle: number; node: number } | null;
}

type Watch = (names: string | string[], changed: () => void) => void;

interface ParentNode {
  querySelector(selectors: ".sd-player"): Player;
}

interface Window {
  gradio_config: { components: any[]; css: string };
}
