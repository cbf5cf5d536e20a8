/** `review`: questions to a person, and decisions on them. */

import type { Json } from '@capstan/core/contracts/primitives';
import {
  Review,
  type ReviewAction,
  type ReviewDecision,
  ReviewKind,
  ReviewList,
  ReviewState,
  type ReviewSummary,
} from '@capstan/core/contracts/review';
import { parseJson } from '@capstan/core/json/text';
import { InvalidArgumentError } from 'commander';
import { type ApiAnswer, type ApiClient, jsonBody, path } from '../client/api-client.ts';
import type { Session } from '../client/session.ts';
import { command, group, oneOf, parsed, type Register, required, usually } from '../command.ts';
import { UsageError } from '../errors.ts';
import { collectText, readInput, readLimit } from '../input/arguments.ts';
import { formatState } from '../render/formats.ts';
import type { Columns } from '../render/print.ts';
import { editPlace, formatDue, formatSubject, renderReview } from '../render/review-detail.ts';
import type { Shell } from '../shell.ts';

const newest = '@latest';

/** @throws UsageError for `@latest` when no review is open */
async function resolveReview(client: ApiClient, reference: string): Promise<string> {
  if (reference !== newest) return reference;
  const { value } = await client.get('/v1/reviews', ReviewList, { state: 'open', limit: 1 });
  const [review] = value.items;
  if (review === undefined) throw new UsageError('nothing waits for a review');
  return review.review_id;
}

const reviewTable: Columns<ReviewSummary> = [
  ['REVIEW', 'review_id'],
  ['STATE', ({ state }, { style }) => formatState(state, style)],
  ['KIND', 'kind'],
  ['ABOUT', formatSubject],
  ['DUE', (review, { now }) => formatDue(review, now)],
  ['WHY', 'reason', 'shrinks'],
];

const listCommand = command('ls', {
  about: 'list open reviews',
  example: 'capstan review ls --overdue',
  isDefault: true,
  options: {
    '--state <state>': oneOf('only these', [...ReviewState.options, 'all'], 'open'),
    '--kind <kind>': oneOf('only these', ReviewKind.options),
    '--assignee <key-id>': 'claimed by this key',
    '--run <id>': 'of this run',
    '--overdue': 'past their due date',
    '-n, --limit <n>': parsed('at most this many (default: 50)', readLimit),
  },
  call: ({ client }, { state: wanted, run: run_id, ...others }) => {
    const { kind, assignee, limit, overdue } = others;
    const state = wanted === 'all' ? undefined : wanted;
    return client.get('/v1/reviews', ReviewList, { kind, assignee, run_id, limit, state, overdue });
  },
  show: ({ items }, { print }, { state }) => {
    if (items.length > 0) return print.table(reviewTable, items);
    print.remark(state === 'open' ? 'nothing waits for a review' : 'no such review');
  },
});

const reviewArgument = { '[review]': usually('review id, or @latest', newest) } as const;

function tell({ print }: Session, { state, review_id }: Review, what: string): void {
  print.line(`${formatState(state, print.style)}  ${review_id}  ${what}`);
}

const showCommand = command('show', {
  about: 'show what failed, why, and what is proposed',
  args: reviewArgument,
  call: async ({ client }, { review }) =>
    client.get(path`/v1/reviews/${await resolveReview(client, review)}`, Review),
  show: (review, { print, shell }) =>
    print.lines(renderReview(review, { style: print.style, width: print.width, now: shell.now() })),
});

function claimCommand(act: 'claim' | 'release', about: string): Register {
  return command(act, {
    about,
    args: reviewArgument,
    call: async ({ client }, { review }) =>
      client.post(path`/v1/reviews/${await resolveReview(client, review)}/${act}`, Review, jsonBody({})),
    show: (review, session) =>
      tell(session, review, act === 'claim' ? `yours until ${review.claim_expires_at}` : 'released'),
  });
}

function readWhole(least: number, most: number) {
  return (text: string): number => {
    const value = Number(text);
    if (text.trim() !== '' && Number.isInteger(value) && value >= least && value <= most) return value;
    throw new InvalidArgumentError(`Write a whole number from ${least} to ${most}.`);
  };
}

function parseValue(text: string): Json {
  const value = parseJson(text) as Json | undefined;
  return value === undefined ? text : value;
}

const decisionArgument = { '<review>': 'review id, or @latest' } as const;
const decisionOptions = {
  '--note <text>': 'kept with the decision',
  '--if-version <n>': parsed('only if the review is still at this version', readWhole(1, 999_999_999)),
} as const;
const forgetOption = { '--no-remember': 'do not keep a correction that works as a skill' } as const;

interface DecisionGiven {
  readonly review: string;
  readonly note: string | undefined;
  readonly ifVersion: number | undefined;
}

/** Reads the review, then decides on exactly that version. */
async function decide(
  { client }: Session,
  { review: reference, note, ifVersion }: DecisionGiven,
  makeDecision: (review: Review) => Partial<ReviewDecision> | Promise<Partial<ReviewDecision>>,
): Promise<ApiAnswer<Review>> {
  const id = await resolveReview(client, reference);
  const { value: review } = await client.get(path`/v1/reviews/${id}`, Review);
  const decision = await makeDecision(review);
  const body = jsonBody({ action: decision.action, note, ...decision });
  const ifMatch = `"${ifVersion ?? review.version}"`;
  return client.post(path`/v1/reviews/${id}/decision`, Review, { ...body, ifMatch });
}

function showDecided(review: Review, session: Session): void {
  tell(session, review, review.decision?.action ?? '');
  if (review.run_id !== undefined) session.print.remark(`capstan show ${review.run_id} --watch`);
}

/** Omits the default. */
function isForgotten(remember: boolean | undefined): Pick<ReviewDecision, 'remember'> {
  return remember === false ? { remember } : {};
}

interface EditOptions {
  readonly input: string | undefined;
  readonly set: readonly string[] | undefined;
  readonly remove: readonly string[] | undefined;
}

/** The whole input, or the failed input with some values changed. @throws UsageError */
async function readEdit(
  { input, set = [], remove = [] }: EditOptions,
  review: Review,
  shell: Shell,
): Promise<Json> {
  if (input === undefined && set.length + remove.length === 0) {
    throw new UsageError('give the correct input with --input, or the changes with --set and --remove');
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
  return edited;
}

const approveCommand = command('approve', {
  about: 'run a proposed input',
  args: decisionArgument,
  options: {
    ...decisionOptions,
    '-p, --proposal <n>': parsed('which one, as `review show` numbers them', readWhole(0, 100)),
    ...forgetOption,
  },
  call: (session, { proposal, remember, ...given }) =>
    decide(session, given, () => ({ action: 'approve', proposal, ...isForgotten(remember) })),
  show: showDecided,
});

const editCommand = command('edit', {
  about: 'run a corrected input',
  example: 'capstan review edit REVIEW --set /rate=44100',
  args: decisionArgument,
  options: {
    ...decisionOptions,
    '-i, --input <json>': 'all of it: inline JSON, @FILE, or - for stdin',
    '-s, --set </place=value>': parsed('change one place of the failing input (repeatable)', collectText),
    '--remove </place>': parsed('leave one out (repeatable)', collectText),
    ...forgetOption,
  },
  call: (session, { remember, ...given }) =>
    decide(session, given, async (review) => ({
      action: 'edit',
      input: await readEdit(given, review, session.shell),
      ...isForgotten(remember),
    })),
  show: showDecided,
});

const adviseCommand = command('advise', {
  about: 'give advice, and retry',
  args: decisionArgument,
  options: {
    ...decisionOptions,
    '--say <text>': required('the instructions'),
    '-l, --level <n>': parsed('where to execute, 0 to 4', readWhole(0, 4)),
  },
  call: (session, { say: instructions, level, ...given }) =>
    decide(session, given, () => ({ action: 'advise', instructions, level })),
  show: showDecided,
});

function plainCommand(action: ReviewAction, about: string): Register {
  return command(action, {
    about,
    args: decisionArgument,
    options: decisionOptions,
    call: (session, given) => decide(session, given, () => ({ action })),
    show: showDecided,
  });
}

const decideCommand = command('decide', {
  about: 'any decision that `review show` lists, as JSON',
  example: `capstan review decide REVIEW -d '{"action": "raise", "budget_ceiling_usd": 2}'`,
  args: decisionArgument,
  options: { ...decisionOptions, '-d, --decision <json>': required('inline JSON, @FILE, or - for stdin') },
  call: (session, { decision, ...given }) => decide(session, given, () => readInput(decision, session.shell)),
  show: showDecided,
});

export const registerReviewCommand = group('review', 'decide what Capstan asks a person', [
  listCommand,
  showCommand,
  claimCommand('claim', 'keep others from deciding for 15 minutes'),
  claimCommand('release', 'give a claim back'),
  approveCommand,
  editCommand,
  adviseCommand,
  plainCommand('retry', 'try again as it is'),
  plainCommand('skip', 'continue without the step'),
  plainCommand('reject', 'fail the step'),
  decideCommand,
]);
