import { type Command, InvalidArgumentError, Option } from 'commander';
import type { Json } from '../../contracts/primitives.ts';
import {
  Review,
  type ReviewAction,
  type ReviewDecision,
  ReviewKind,
  ReviewList,
  ReviewState,
} from '../../contracts/review.ts';
import { type ApiClient, jsonBody } from '../client/api-client.ts';
import { addCommonOptions, type CommonOptions, openSession, type Session } from '../client/session.ts';
import { UsageError } from '../errors.ts';
import { collectText, readInput, readLimit } from '../input/arguments.ts';
import { editPlace } from '../input/json-edit.ts';
import { formatState } from '../render/formats.ts';
import type { Column } from '../render/print.ts';
import { formatDue, formatSubject, renderReview } from '../render/review-detail.ts';
import type { Shell } from '../shell.ts';

interface ReviewListOptions extends CommonOptions {
  readonly state: string;
  readonly kind?: string;
  readonly assignee?: string;
  readonly run?: string;
  readonly overdue?: boolean;
  readonly limit?: number;
}

interface DecideOptions extends CommonOptions {
  readonly note?: string;
  readonly ifVersion?: number;
}

interface CorrectOptions extends DecideOptions {
  /** False by --no-remember. */
  readonly remember: boolean;
}

type DecisionFields = Omit<ReviewDecision, 'action'>;
/** What a decision says besides its action, from the options and the review as it is. */
type ReadFields<Options> = (
  options: Options,
  review: Review,
  shell: Shell,
) => Promise<DecisionFields> | DecisionFields;

const newest = '@latest';
function reviewPath(id: string, rest = ''): string {
  return `/v1/reviews/${encodeURIComponent(id)}${rest}`;
}

const columns: readonly Column[] = [
  { header: 'REVIEW' },
  { header: 'STATE' },
  { header: 'KIND' },
  { header: 'ABOUT' },
  { header: 'DUE' },
  { header: 'WHY', shrinks: true },
];

async function list(
  { state, kind, assignee, run, ...options }: ReviewListOptions,
  shell: Shell,
): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { value, text } = await client.get('/v1/reviews', ReviewList, {
    kind,
    assignee,
    run_id: run,
    limit: options.limit,
    state: state === 'all' ? undefined : state,
    overdue: options.overdue,
  });
  if (json) return print.json(text);
  const now = shell.now();
  const rows = value.items.map((review) => [
    review.review_id,
    formatState(review.state, print.style),
    review.kind,
    formatSubject(review),
    formatDue(review, now),
    review.reason,
  ]);
  if (rows.length === 0) print.remark(state === 'open' ? 'nothing waits for a review' : 'no such review');
  else print.table(columns, rows);
}

/** @throws UsageError when `@latest` is asked for and nothing waits */
async function resolveReview(client: ApiClient, reference: string): Promise<string> {
  if (reference !== newest) return reference;
  const { value } = await client.get('/v1/reviews', ReviewList, { state: 'open', limit: 1 });
  const [review] = value.items;
  if (review === undefined) throw new UsageError('nothing waits for a review');
  return review.review_id;
}

async function show(reference: string, options: CommonOptions, shell: Shell): Promise<void> {
  const { client, print, json } = await openSession(options, shell);
  const { value, text } = await client.get(reviewPath(await resolveReview(client, reference)), Review);
  if (json) return print.json(text);
  print.lines(renderReview(value, { style: print.style, width: print.width, now: shell.now() }));
}

function tell({ print, json }: Session, review: Review, text: string, what: string): void {
  if (json) print.json(text);
  else print.line(`${formatState(review.state, print.style)}  ${review.review_id}  ${what}`);
}

function claim(act: 'claim' | 'release') {
  return async (reference: string, options: CommonOptions, shell: Shell): Promise<void> => {
    const session = await openSession(options, shell);
    const id = await resolveReview(session.client, reference);
    const { value, text } = await session.client.post(reviewPath(id, `/${act}`), Review, jsonBody({}));
    tell(session, value, text, act === 'claim' ? `yours until ${value.claim_expires_at}` : 'released');
  };
}

/** Reads the review, then decides on just that version of it. */
async function decide<Options extends DecideOptions>(
  reference: string,
  options: Options,
  shell: Shell,
  [action, readFields]: readonly [ReviewAction | null, ReadFields<Options>],
): Promise<void> {
  const session = await openSession(options, shell);
  const { client, print, json } = session;
  const id = await resolveReview(client, reference);
  const { value: review } = await client.get(reviewPath(id), Review);
  const { note } = options;
  const said = await readFields(options, review, shell);
  const body = { ...(action === null ? {} : { action }), ...(note === undefined ? {} : { note }), ...said };
  const ifMatch = `"${options.ifVersion ?? review.version}"`;
  const decided = await client.post(reviewPath(id, '/decision'), Review, { ...jsonBody(body), ifMatch });
  tell(session, decided.value, decided.text, decided.value.decision?.action ?? '');
  const { run_id } = decided.value;
  if (!json && run_id !== undefined) print.remark(`capstan show ${run_id} --watch`);
}

function readWhole(least: number, most: number) {
  return (text: string): number => {
    const value = Number(text);
    if (text.trim() !== '' && Number.isInteger(value) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`Write a whole number from ${least} to ${most}.`);
  };
}

function parseValue(text: string): Json {
  try {
    return JSON.parse(text) as Json;
  } catch {
    return text;
  }
}

interface EditOptions extends CorrectOptions {
  readonly input?: string;
  readonly set?: readonly string[];
  readonly remove?: readonly string[];
}

/** The whole input, or the failing one with some places changed. @throws UsageError */
const readEdit: ReadFields<EditOptions> = async (
  { input, set = [], remove = [], remember },
  review,
  shell,
) => {
  const kept = remember ? {} : { remember };
  if (input === undefined && set.length + remove.length === 0) {
    throw new UsageError('say what is right with --input, or what to change with --set and --remove');
  }
  let edited = (input === undefined ? review.payload.input : await readInput(input, shell)) as
    | Json
    | undefined;
  if (edited === undefined)
    throw new UsageError('the review shows no input to change; write it with --input');
  for (const pair of set) {
    const at = pair.indexOf('=');
    if (at < 0) throw new UsageError(`--set "${pair}": write /place=value`);
    edited = editPlace(edited, pair.slice(0, at), { set: parseValue(pair.slice(at + 1)) });
  }
  for (const place of remove) edited = editPlace(edited, place, 'remove');
  return { input: edited, ...kept };
};

interface ApproveOptions extends CorrectOptions {
  readonly proposal?: number;
}

const readApproval: ReadFields<ApproveOptions> = ({ proposal, remember }) => ({
  ...(proposal === undefined ? {} : { proposal }),
  ...(remember ? {} : { remember }),
});

interface AdviseOptions extends DecideOptions {
  readonly say: string;
  readonly level?: number;
}

const readAdvice: ReadFields<AdviseOptions> = ({ say, level }) => ({
  instructions: say,
  ...(level === undefined ? {} : { level }),
});

interface GenericOptions extends DecideOptions {
  readonly decision: string;
}

const readDecision: ReadFields<GenericOptions> = async ({ decision }, _, shell) =>
  (await readInput(decision, shell)) as DecisionFields;

const nothing: ReadFields<DecideOptions> = () => ({});

function addDecision(review: Command, name: string, description: string): Command {
  return review
    .command(name)
    .description(description)
    .argument('<review>', 'review id, or @latest')
    .option('--note <text>', 'kept with the decision')
    .option('--if-version <n>', 'only if the review is still at this version', readWhole(1, 999_999_999));
}

function addCorrections(review: Command, shell: Shell): void {
  const forget = ['--no-remember', 'do not keep a correction that works as a skill'] as const;
  const approve = addDecision(review, 'approve', 'run a proposed input')
    .option('-p, --proposal <n>', 'which one, as `review show` numbers them', readWhole(0, 100))
    .option(...forget)
    .action((id: string, options: ApproveOptions) => decide(id, options, shell, ['approve', readApproval]));
  addCommonOptions(approve);
  const edit = addDecision(review, 'edit', 'run a corrected input')
    .option('-i, --input <json>', 'all of it: inline JSON, @FILE, or - for stdin')
    .option('-s, --set </place=value>', 'change one place of the failing input (repeatable)', collectText)
    .option('--remove </place>', 'leave one out (repeatable)', collectText)
    .option(...forget)
    .addHelpText('after', '\nExample:\n  capstan review edit REVIEW --set /rate=44100')
    .action((id: string, options: EditOptions) => decide(id, options, shell, ['edit', readEdit]));
  addCommonOptions(edit);
  const advise = addDecision(review, 'advise', 'say what to do, and let it be tried again')
    .addOption(new Option('--say <text>', 'the instructions').makeOptionMandatory())
    .option('-l, --level <n>', 'where to execute, 0 to 4', readWhole(0, 4))
    .action((id: string, options: AdviseOptions) => decide(id, options, shell, ['advise', readAdvice]));
  addCommonOptions(advise);
}

function addPlainDecisions(review: Command, shell: Shell): void {
  const plain = {
    retry: 'try again as it is',
    skip: 'go on without the step',
    reject: 'let it fail',
  } as const;
  for (const [name, description] of Object.entries(plain)) {
    const action = name as keyof typeof plain;
    const command = addDecision(review, name, description).action((id: string, options: DecideOptions) =>
      decide(id, options, shell, [action, nothing]),
    );
    addCommonOptions(command);
  }
  const generic = addDecision(review, 'decide', 'any decision that `review show` lists, as JSON')
    .addOption(
      new Option('-d, --decision <json>', 'inline JSON, @FILE, or - for stdin').makeOptionMandatory(),
    )
    .addHelpText(
      'after',
      `\nExample:\n  capstan review decide REVIEW -d '{"action": "raise", "budget_ceiling_usd": 2}'`,
    )
    .action((id: string, options: GenericOptions) => decide(id, options, shell, [null, readDecision]));
  addCommonOptions(generic);
}

function addList(review: Command, shell: Shell): void {
  const command = review
    .command('ls', { isDefault: true })
    .description('list what waits for a person')
    .addOption(
      new Option('--state <state>', 'only these').choices([...ReviewState.options, 'all']).default('open'),
    )
    .addOption(new Option('--kind <kind>', 'only these').choices(ReviewKind.options))
    .option('--assignee <key-id>', 'claimed by this key')
    .option('--run <id>', 'of this run')
    .option('--overdue', 'past their due date')
    .option('-n, --limit <n>', 'at most this many (default: 50)', readLimit)
    .addHelpText('after', '\nExample:\n  capstan review ls --overdue')
    .action((options: ReviewListOptions) => list(options, shell));
  addCommonOptions(command);
}

export function registerReviewCommand(program: Command, shell: Shell): void {
  const review = program.command('review').description('decide what Capstan asks a person');
  addList(review, shell);
  const about = (name: string, description: string): Command =>
    review.command(name).description(description).argument('[review]', 'review id, or @latest', newest);
  const shown = about('show', 'show what failed, why, and what is proposed').action(
    (id: string, options: CommonOptions) => show(id, options, shell),
  );
  const claimed = about('claim', 'keep others from deciding for 15 minutes').action(
    (id: string, options: CommonOptions) => claim('claim')(id, options, shell),
  );
  const released = about('release', 'give a claim back').action((id: string, options: CommonOptions) =>
    claim('release')(id, options, shell),
  );
  for (const command of [shown, claimed, released]) addCommonOptions(command);
  addCorrections(review, shell);
  addPlainDecisions(review, shell);
}
