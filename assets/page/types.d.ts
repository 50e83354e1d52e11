/* What the page's scripts share, for the type checker alone: the page is not sent this file. */

/** One line of a run's log, as `specdec/events.py` writes it. */
type LogEvent = { event: string; lane?: string; [key: string]: any };

/** What became of a drafted token, or how the target's own came about. */
type State = "acc" | "rej" | "dis" | "cut" | "res" | "bon" | "pla";

/** The likeliest tokens of a distribution, and what all others have together. */
type Distribution = {
  top: { token: number; piece: string; prob: number }[];
  rest: number;
  entropy?: number;
  sample?: number;
};

/** A drafted token of a cycle: p of the target, q of the drafter, u the random draw. */
type Draft = {
  token: number;
  piece: string;
  status: string;
  state: State;
  level: number;
  parent: number;
  ready: number;
  seam?: string[];
  p?: number;
  q?: number;
  u?: number;
  h?: number;
  overlap?: number;
  target?: Distribution;
  draft?: Distribution;
};

type OwnToken = {
  piece: string;
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
  drafting: number;
  passing: number;
  checks: number;
  checking: number;
};

/** One cycle; times are milliseconds since the end of the lane's prefill. */
type Cycle = {
  number: number;
  draft: { start: number; end: number; steps: number[] } | null;
  check: { start: number; end: number } | null;
  drafts: Draft[];
  own: OwnToken | null;
  at: number;
  start: number;
  gained: number;
  served: boolean;
  tokens: number[];
  pieces: string[];
  bonus?: Distribution;
  who: string;
  tree: boolean;
  accepted: number;
  judged: number;
  sum: Totals;
};

type Lane = {
  name: string;
  started: LogEvent | null;
  zero: number | null;
  first: {
    pieces: string[];
    tokens: number[];
    distribution?: Distribution;
    p?: number;
    cycle?: Cycle;
  } | null;
  open: { drafted?: LogEvent; verified?: LogEvent } | null;
  cycles: Cycle[];
  failures: LogEvent[];
  finished: LogEvent | null;
  end: number;
};

type Run = { header: LogEvent; names: string[]; lanes: Record<string, Lane>; closed: boolean };

/** The player of a page: a run, a moment of it, and what its other views may ask. */
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
  wantsGame?: boolean;
}

type Watch = (names: string | string[], changed: () => void) => void;

interface ParentNode {
  querySelector(selectors: ".sd-player"): Player;
}

interface Window {
  gradio_config: { components: any[]; css: string };
}
