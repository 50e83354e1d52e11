/* For the type checker only: the page does not load this file. */

/* -- the texts of the page, and its elements -- */

/** The texts of a file. Sections are checked by name; where all entries are sentences, any name may be looked up. */
type Texts<T> = T extends string | number
  ? T
  : T extends readonly (infer Entry)[]
    ? Texts<Entry>[]
    : T extends Record<string, string>
      ? T & Record<string, string>
      : { [Name in keyof T]: Texts<T[Name]> };
/** Python adds the names of drafters and what each does (`specdec/ui/tabs/race.py`). */
type PlayerTexts = Texts<typeof import("../text/en/player.json")> & {
  names: Record<string, string>;
  say: { start: Record<string, string> };
  methods: Record<string, MethodEntry>;
  drafter: Record<string, string>;
};
type StepTexts = Texts<typeof import("../text/en/step.json")> & { notation: Record<string, Record<string, string>> };
type TheoryTexts = Texts<typeof import("../text/en/theory.json")>;
type GuideTexts = Texts<typeof import("../text/en/guide.json")>;
type LosslessTexts = Texts<typeof import("../text/en/lossless.json")> & {
  mistakes: Record<string, { title: string; what: string; met?: string }>;
};
type ClassTexts = Texts<typeof import("../text/en/class.json")>;
type TracesTexts = Texts<typeof import("../text/en/traces.json")>;
type MethodEntry = { kind?: string; tree?: boolean };
type Sentence = string | false | null | undefined | Sentence[];

/** What `html` and `append` take. */
type Child = string | number | Node | null | undefined | false | Child[];
type Attributes = Record<string, string | number | boolean | null | undefined>;
type Values = Record<string, any>;
type Act = () => unknown;
/** A button that a notice offers. */
type Press = { label: string; act: Act };

/** An element with `data-part` in a template. It can be a field, a button or a table, so it has their properties. */
interface Part extends HTMLElement {
  [name: string]: any;
}
type Parts = Record<string, Part>;

/** The props of a component, as Gradio passes them: strings, numbers and JSON. */
type Props = Record<string, any>;
type Watch = (names: string | string[], act: Act) => unknown;
type Trigger = (event: string, detail?: object) => unknown;
/** A component's script exports it as `mount`, and Gradio calls it. */
type Mount = (element: HTMLElement, props: Props, watch: Watch, trigger: Trigger, server: Server) => void;
/** The functions of Python that a component may call. */
type Server = Record<string, (...values: any[]) => Promise<any>>;

/* -- a run, as `race/log.js` builds it from the lines of a trace -- */

type State =
  "accepted" | "rejected" | "discarded" | "resampled" | "bonus" | "pending" | "plain" | "cut" | "future" | "out";
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
  /** Of a token of bytes: the character that it is a part of. */
  character?: string;
  level: number;
  parent: number;
  readyMs: number;
}
/** A token with what stands around it in its word (`race/spelling.js`). */
interface Word {
  piece: string;
  character?: string;
  head?: string;
  goesOn?: boolean;
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
  plainPassMs: number; // 0 without a plain lane
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
  returnedRun: Run | null;
  finishedRun: Run | null;
  timeMs: number;
  asChips: boolean;
  widths: Record<string, number>;
  playing: boolean;
  still: boolean;
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
  /** Notes that a reload brought back the run on show. */
  returned(): void;
  /** By how much the replay is slowed down. */
  speed(): number | "auto";
  setSpeed(slowdown: number | "auto"): void;
  dim(preparing: boolean | "unrecorded"): void;
  moment(): Required<Moment>;
  show(moment: Moment): void;
  moveTo(place: Element, props: Props, watch: Watch, trigger?: Trigger | null): void;
}
interface Player extends HTMLElement, PlayerApi {
  /** The draft that the tab *Step through* shall open. */
  wantedStep: { cycle: number; node: number } | null;
  /** Creates a link to the run; `traces/traces.js` sets it. */
  share?: () => Promise<{ link: string; whole: boolean }>;
}

type Playback = ReturnType<typeof import("./race/playback.js").createPlayback>;
type BarPaths = ReturnType<typeof import("./race/svg.js").createBarPaths>;
/** Maps a value to px. */
type Scale = (value: number) => number;
interface ColumnLayout {
  cycles: Cycle[];
  slots: number;
  width: number;
  columnPx: number;
  right: number;
}
interface MeterPoint {
  endMs: number;
  speedup: number | null;
  alpha: number | null;
  saved: number;
}
interface MeterLook {
  name: "speedup" | "alpha" | "saved";
  top: number;
  marks: [number, string][];
  label: string;
}

/* -- Step through -- */

/** A sub-step: its name, or the index of the draft that is judged. */
type Step = string | number;
type Coin = (node: number) => number;
interface Choice {
  rule?: string | null;
  k?: number | null;
  coins?: Record<number, number> | null;
}
interface Trial {
  p: number;
  q: number;
  accepted: boolean;
  /** Numbers, or missing where the rule has none. */
  u?: any;
  h?: any;
  chance?: any;
  limit?: any;
  sample?: any;
}
interface Verdict {
  rule: string;
  k: number;
  path: number[];
  order: number[];
  trials: Record<number, Trial>;
  tip: number;
  weight: number;
}
/** A row of a chart of both distributions. */
interface Row {
  token?: number;
  piece?: string;
  p: number;
  q: number;
  share?: any;
}
interface OpenCycle {
  cycle: Cycle;
  recorded: Verdict;
  changed: boolean;
  verdict: Verdict;
  states: State[];
  targetToken: any;
  steps: Step[];
  stepIndex: number;
  gained: number;
}
type Chips = ReturnType<typeof import("./step/chips.js").createChips>;
interface StepView {
  cycle: number;
  step: Step;
  choice: Choice;
  coin: number | null;
  notation: string;
  playing: boolean;
  timer: number;
  openCycle?: number;
}
interface StepPage {
  texts: StepTexts;
  playerTexts: PlayerTexts;
  view: StepView;
  root: HTMLElement;
  part: Parts;
  current(): OpenCycle;
  passTime(): string;
  plainStepMs(): number;
  cycles(): Cycle[];
  started(): Partial<Started>;
  rule(): string;
  isGreedy(): boolean;
  computeCycle(): OpenCycle;
  draw(byHand?: boolean): void;
  goTo(cycle: number, step: Step | null, byHand?: boolean): void;
  stepBy(direction: number): boolean;
  pauseAnd(act: Act): void;
  showStep(step: Step, coin?: number | null): void;
}

/* -- Lossless?, Theory, Guide -- */

type Kind = "good" | "bad" | "missed";
interface Certificate {
  sampled: any[][];
  [name: string]: any;
}
type SetCheck = ReturnType<typeof import("./lossless/stamps.js").createStamps>["setCheck"];

type Machine = Record<"flops" | "bandwidth" | "memory", number>;
type Model = Record<string, number>;
type Hardware = Record<string, any>;
type Measured = NonNullable<ReturnType<typeof import("./theory/measured.js").measureRun>>;
type Frame = ReturnType<ReturnType<typeof import("./theory/axes.js").createAxes>["createFrame"]>;
type Costs = { machine: Machine; target: Model; draft: Model; plain: number; c: number; v: number; free: number };
type TheorySettings = Record<string, any>;
interface TheoryPage {
  texts: TheoryTexts;
  part: Parts;
  settings: TheorySettings;
  widths: Record<string, number>;
  createFrame: ReturnType<typeof import("./theory/axes.js").createAxes>["createFrame"];
  speedAxis: ReturnType<typeof import("./theory/axes.js").createAxes>["speedAxis"];
  measured: () => Measured;
  checkCost: (k: number) => number;
  speedupAt: (k: number, alpha?: number) => number;
  findBestK: () => number;
}

type Box = Record<"left" | "right" | "top" | "bottom", number>;
/** The questions of the Guide, by id. */
type Entries = Record<string, { ask: string; say: (string | string[][])[] }>;
type Hits = { questions: string[]; terms: number[]; places: number[] };
type TourPage = Record<string, any>;
type Cell = string | number | number[] | null;
type HostPart = { at: number; script: string; tab: string; props: Props; server: Record<string, string> };

interface ParentNode {
  querySelector(selectors: ".sd-player"): Player;
  /** The page's templates hold what has a class of ours, or an id. */
  querySelector(selectors: `.sd-${string}` | `#${string}`): Part;
  querySelectorAll(selectors: `.sd-${string}` | `[data-${string}`): NodeListOf<Part>;
}

interface Array<T> {
  filter(predicate: BooleanConstructor): Exclude<T, null | undefined | false | "" | 0>[];
}

interface Window {
  gradio_config: { components: any[]; css: string };
}
