/* For the type checker only: the page does not load this file. */

/* -- the texts of the page, and its elements -- */

type PlayerTexts = typeof import("../text/en/player.json");
type StepTexts = typeof import("../text/en/step.json");
type TheoryTexts = typeof import("../text/en/theory.json");
type GuideTexts = typeof import("../text/en/guide.json");
type LosslessTexts = typeof import("../text/en/lossless.json");
type ClassTexts = typeof import("../text/en/class.json");
type TracesTexts = typeof import("../text/en/traces.json");
type MethodEntry = { kind?: string; tree?: boolean };

/** What `html` and `append` take. */
type Child = string | number | Node | null | undefined | false | Child[];
type Attributes = Record<string, string | number | boolean | null | undefined>;
type Act = () => unknown;

/** An element with `data-part` in a template. It can be a field, a button or a table, so it has their properties. */
interface Part extends HTMLElement {
  [name: string]: any;
}
type Parts = Record<string, Part>;

/** The props of a component, as Gradio passes them: strings, numbers and JSON. */
type Props = Record<string, any>;
type Watch = (names: string | string[], act: Act) => unknown;
type Trigger = (event: string, detail?: object) => unknown;
/** The functions of Python that a component may call. */
type Server = Record<string, (...values: any[]) => Promise<any>>;

/* -- a run, as `race/log.js` builds it from the lines of a trace -- */

type State = "accepted" | "rejected" | "discarded" | "resampled" | "bonus" | "pending" | "plain" | "cut" | "future" | "out";
interface Candidate {
  token: number;
  piece: string;
  prob: number;
}
interface Distribution {
  top: Candidate[];
  rest: number;
  entropy: number;
  sample?: Candidate;
}
interface Params {
  temperature: number;
  top_k: number;
  top_p: number;
  max_tokens: number;
  seed: number;
  stop: string[];
  ignore_end: boolean;
}
/** A judged position of a `verified` event; `Position` in `specdec/events.py` defines its fields. */
interface Position {
  node: number;
  token: number;
  piece: string;
  status: "accepted" | "rejected" | "discarded";
  p: number;
  q: number;
  u?: number | null;
  h?: number | null;
  row?: number | null;
  behind?: number | null;
  block?: number | null;
  overlap?: number;
  target?: Distribution;
  draft?: Distribution;
  residual?: Distribution;
}
/** A line of a trace; `specdec/events.py` defines the fields of each kind. */
interface TraceEvent {
  event: string;
  lane: string;
  [field: string]: any;
}
interface Started extends TraceEvent {
  drafter: string;
  k: number;
  params: Params;
  rule: string;
  lossless: boolean;
  server: string;
}
interface Header {
  run: string;
  source: string;
  prompt: string;
  lanes?: string[];
  kind?: string;
  models?: Record<string, any>;
  machine?: Record<string, any>;
}
interface Draft extends Position {
  state: State;
  text: string;
  level: number;
  parent: number;
  readyMs: number;
}
interface TargetToken {
  piece: string;
  text?: string;
  token: number;
  state: State;
  distribution?: Distribution;
  p?: number;
}
interface Span {
  start: number;
  end: number;
}
interface Totals {
  tokens: number;
  accepted: number;
  judged: number;
  drafted: number;
  trees: number;
  draftMs: number;
  passMs: number;
  checks: number;
  checkMs: number;
}
interface Cycle {
  number: number;
  drafting: (Span & { steps: number[] }) | null;
  check: Span | null;
  drafts: Draft[];
  targetToken: TargetToken | null;
  startMs: number;
  endMs: number;
  gained: number;
  accepted: number;
  judged: number;
  served: boolean;
  tree: boolean;
  tokens: number[];
  pieces: string[];
  texts: string[];
  bonus?: Distribution;
  totals: Totals;
}
interface Prefill {
  pieces: string[];
  texts: string[];
  tokens: number[];
  distribution?: Distribution;
  p?: number;
  cycle?: Cycle;
}
interface Lane {
  name: string;
  started: Started | null;
  prefillEnd: number | null;
  prefill: Prefill | null;
  pending: { drafted?: TraceEvent; verified?: TraceEvent } | null;
  pendingBytes: number[];
  cycles: Cycle[];
  failures: TraceEvent[];
  finished: TraceEvent | null;
  endMs: number;
}
interface Run {
  header: Header;
  names: string[];
  lanes: Record<string, Lane>;
  closed: boolean;
}
interface LogReader {
  firstLine: string | null;
  length: number;
  run: Run | null;
}

/** The figures of a lane at a time of its replay (`race/measure.js`). */
interface LaneFigures extends Totals {
  passes: number;
  last: Cycle | null;
  written: number;
  endMs: number;
  rate: number;
}
interface Figures {
  speculative: LaneFigures;
  plain: LaneFigures;
  peer: LaneFigures | null;
  speedup: number | null;
  peerSpeedup: number | null;
  reported: boolean;
  alpha: number | null;
  tau: number | null;
  draftAcceptance: number | null;
  inPlainPasses: (totalMs: number, n: number) => number | null;
  cost: number | null;
  c: number | null;
  v: number | null;
  draftCost: number | null;
  passCost: number | null;
}

/* -- the player -- */

/** What the player shows: a run, and the time of its replay. `race/player.js` creates it with all its fields. */
interface View {
  run: Run;
  firstRun: Run | null;
  linkedRun: Run | null;
  finishedRun: Run | null;
  fromLink: boolean;
  timeMs: number;
  asChips: boolean;
  widths: Record<string, number>;
  playing: boolean;
  slowdown: number;
  autoSpeed: boolean;
  zoom: string;
  zoomChosen: boolean;
  rejectionPause: string;
  timer: number;
  frameId: number;
  touched: boolean;
  lastFrameMs: number;
  pauseMs: number;
  settleMs: number;
  settleProgress: number;
  paintedAt: number;
  onScreen: boolean;
  chartsOnScreen: boolean;
  chartsStale: boolean;
}
/** A token in a lane of the player, and what its card shows. */
interface TokenItem {
  node: HTMLElement;
  state: State;
  shownState: State;
  shownMs: number;
  judgedMs: number;
  lane: number;
  piece: string;
  tabIndex?: number;
  cycle?: Cycle;
  draft?: Draft;
  i?: number;
  targetToken?: TargetToken | Prefill;
  place?: string;
}
/** A moment of a replay, which the teacher's page sends to the phones. */
interface Moment {
  t: number;
  settle?: number;
  playing?: boolean;
  slow?: number;
  closed?: boolean;
}
/** What the player offers to the other scripts of a page. `race/player.js` defines it on its element. */
interface PlayerApi {
  words: PlayerTexts;
  run(): Run;
  isFirst(): boolean;
  log(): string;
  load(log: string, fromLink?: boolean): void;
  grow(log: string): void;
  ended(): void;
  moment(): Required<Moment>;
  show(moment: Moment): void;
  moveTo(place: Element, props: Props, watch: Watch, trigger: Trigger): void;
}
interface Player extends HTMLElement, PlayerApi {
  /** The draft that the tab *Step through* shall open. */
  wantedStep: { cycle: number; node: number } | null;
  /** Creates a link to the run; `traces/traces.js` sets it. */
  share?: () => Promise<{ link: string; whole: boolean }>;
}

interface ParentNode {
  querySelector(selectors: ".sd-player"): Player;
}

interface Window {
  gradio_config: { components: any[]; css: string };
}
