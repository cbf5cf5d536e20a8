/**
 * Open reviews as tables: those with the same question are in one, with a column for each input that differs between
 * them. A row is decided in its place, alone or with others.
 */
import type { Json, JsonObject } from '@capstan/core/contracts/primitives';
import type { Review, ReviewAction, ReviewSummary } from '@capstan/core/contracts/review';
import { toField } from '../../form/schema-model.ts';
import { childrenOf } from '../../json/json-model.ts';
import { adviseCeiling, exactUsd } from '../../review/ceiling.ts';
import { actionWords, kindWords } from '../../review/review-words.ts';
import {
  beginDraft,
  type DecisionDraft,
  offeredActions,
  toDecision,
  whatIsMissing,
} from '../review/model.ts';

export interface ReviewColumn {
  /** JSON Pointer into the input. */
  readonly pointer: string;
  readonly name: string;
}

export interface ReviewGroup {
  readonly key: string;
  readonly heading: string;
  readonly reviews: readonly ReviewSummary[];
  readonly columns: readonly ReviewColumn[];
}

const deepest = 3;
const mostLeaves = 40;
const mostColumns = 4;

function escapeName(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1');
}

type Leaves = ReadonlyMap<string, Json>;

/** Single values by pointer; a list is one of them. */
function leavesOf(value: Json | undefined): Leaves {
  const leaves = new Map<string, Json>();
  const visit = (at: Json, pointer: string, depth: number): void => {
    if (leaves.size >= mostLeaves) return;
    const children = Array.isArray(at) || depth === deepest ? null : childrenOf(at);
    if (children === null) leaves.set(pointer, at);
    else for (const child of children) visit(child.value, `${pointer}/${escapeName(child.name)}`, depth + 1);
  };
  if (value !== undefined) visit(value, '', 0);
  return leaves;
}

function isShort(value: Json | undefined): boolean {
  return value === undefined || typeof value !== 'object' || value === null;
}

/** Names end in the last part of their pointer; equal ones are whole. */
function nameColumns(pointers: readonly string[]): ReviewColumn[] {
  const parts = pointers.map((pointer) =>
    pointer
      .split('/')
      .slice(1)
      .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~')),
  );
  const last = parts.map((all) => all.at(-1) ?? 'input');
  return pointers.map((pointer, at) => {
    const isShared = last.some((name, other) => other !== at && name === last[at]);
    return { pointer, name: isShared ? (parts[at] ?? []).join('.') : (last[at] ?? '') };
  });
}

/** The inputs that differ, those with single values first; of one review, its first ones. */
function columnsOf(reviews: readonly ReviewSummary[]): ReviewColumn[] {
  const all = reviews.map(({ payload }) => leavesOf(payload.input));
  const pointers = [...new Set(all.flatMap((leaves) => [...leaves.keys()]))].filter((one) => one !== '');
  const differs = (pointer: string): boolean =>
    new Set(all.map((leaves) => JSON.stringify(leaves.get(pointer)))).size > 1;
  const told = reviews.length === 1 ? pointers : pointers.filter(differs);
  const isSingle = (pointer: string): boolean => all.every((leaves) => isShort(leaves.get(pointer)));
  const ordered = [...told.filter(isSingle), ...told.filter((pointer) => !isSingle(pointer))];
  return nameColumns(ordered.slice(0, mostColumns));
}

/** Reviews of one step of a pipeline, or of one capability's inputs, have the same inputs. */
function keyOf({ kind, pipeline, step_id, payload }: ReviewSummary): string {
  if (kind === 'budget' || kind === 'skill') return kind;
  return JSON.stringify([kind, pipeline ?? '', step_id ?? '', payload.job_type ?? '']);
}

function headingOf({ kind, pipeline, step_id, payload }: ReviewSummary): string {
  if (kind === 'budget' || kind === 'skill') return kindWords[kind];
  const place = [pipeline, step_id].filter((part) => part !== undefined).join(' › ');
  return [kindWords[kind], place === '' ? payload.job_type : place].filter(Boolean).join(': ');
}

/** In the order of their most urgent review. */
export function groupReviews(reviews: readonly ReviewSummary[]): readonly ReviewGroup[] {
  const groups = new Map<string, ReviewSummary[]>();
  for (const review of reviews) {
    const key = keyOf(review);
    const known = groups.get(key);
    if (known === undefined) groups.set(key, [review]);
    else known.push(review);
  }
  return [...groups].map(([key, members]) => ({
    key,
    heading: headingOf(members[0] as ReviewSummary),
    reviews: members,
    columns: columnsOf(members),
  }));
}

export function cellOf({ payload }: ReviewSummary, { pointer }: ReviewColumn): Json | undefined {
  return leavesOf(payload.input).get(pointer);
}

// Decisions in a row.

/** A field that a row shows for its decision. */
export interface RowField {
  readonly name: string;
  readonly kind: 'text' | 'number' | 'boolean' | 'choice';
  readonly choices: readonly Json[];
  readonly value: Json | undefined;
  readonly isRequired: boolean;
}

const mostFields = 3;
const rowKinds: ReadonlySet<string> = new Set(['text', 'number', 'boolean', 'choice']);

function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function namesIn(value: Json | undefined): JsonObject {
  return isObject(value) ? value : {};
}

/** The names of the input that its refusal is about, at its top. */
function refusedNames({ payload }: ReviewSummary): ReadonlySet<string> {
  const named = (payload.validation_errors ?? []).flatMap(({ pointer }) => pointer.split('/')[1] ?? []);
  return new Set(named);
}

/** Fields of the answer, or of the refused part of an input; null for what does not fit into a row. */
export function fieldsOf(review: ReviewSummary, draft: DecisionDraft): readonly RowField[] | null {
  if (draft.action === 'raise') {
    return [{ name: 'usd', kind: 'number', choices: [], value: draft.usd, isRequired: true }];
  }
  if (draft.action !== 'output' && draft.action !== 'edit') return [];
  const root = namesIn(review.payload.schema);
  const required = new Set(Array.isArray(root.required) ? root.required : []);
  const values = namesIn(draft.action === 'output' ? draft.output : draft.value);
  const refused = refusedNames(review);
  const wanted = Object.entries(namesIn(root.properties)).filter(
    ([name]) => draft.action === 'output' || refused.has(name),
  );
  const fields = wanted.map(([name, given]) => {
    const { kind, choices } = toField(namesIn(given), root);
    return { name, kind, choices, value: values[name], isRequired: required.has(name) };
  });
  const isSmall = fields.length > 0 && fields.length <= mostFields;
  return isSmall && fields.every(({ kind }) => rowKinds.has(kind)) ? (fields as RowField[]) : null;
}

export function writeField(draft: DecisionDraft, name: string, value: Json | undefined): DecisionDraft {
  if (draft.action === 'raise') return { ...draft, usd: String(value ?? '') };
  const part = draft.action === 'output' ? 'output' : 'value';
  const { [name]: _, ...rest } = namesIn(draft[part]);
  return { ...draft, [part]: value === undefined ? rest : { ...namesIn(draft[part]), [name]: value } };
}

/** The draft of a row that is untouched; a budget begins with the sum that lets it continue. */
export function beginRow(review: ReviewSummary): DecisionDraft {
  const draft = beginDraft(review);
  if (draft.action !== 'raise') return draft;
  const advice = adviseCeiling(review, undefined);
  return advice === null ? draft : { ...draft, usd: exactUsd(advice.enoughUsd) };
}

/** Why the row cannot be decided here; null when it can. @param me the id of the own key or person */
export function obstacleOf(
  review: ReviewSummary,
  draft: DecisionDraft,
  me: string | undefined,
): string | null {
  if (review.state === 'claimed' && review.assignee !== me)
    return `claimed by ${review.assignee ?? 'someone'}`;
  if (fieldsOf(review, draft) === null || draft.action === 'narrow' || draft.action === 'merge') {
    return 'open it to decide';
  }
  return whatIsMissing(draft, review as Review, adviseCeiling(review, undefined));
}

/** Actions without a text or a value: they suit any number of reviews. */
const plainActions: readonly ReviewAction[] = [
  'approve',
  'retry',
  'skip',
  'keep',
  'retire',
  'reject',
  'cancel',
];

/** What can be done with all chosen reviews beside their own decisions. */
export function commonActions(reviews: readonly ReviewSummary[]): readonly ReviewAction[] {
  const [first, ...others] = reviews.map((review) => new Set(offeredActions(review as Review)));
  if (first === undefined) return [];
  return plainActions.filter((action) => first.has(action) && others.every((offered) => offered.has(action)));
}

export interface RowDecision {
  readonly review: ReviewSummary;
  readonly draft: DecisionDraft;
}

/** The label of the button that decides the rows as they are: `Approve 12`. */
export function describeDecisions(rows: readonly RowDecision[]): string {
  const actions = new Set(rows.map(({ draft }) => draft.action));
  const [only] = actions;
  const word = only === undefined || actions.size > 1 ? 'Decide' : actionWords[only];
  return `${word} (${rows.length})`;
}

export function toRowDecision({ review, draft }: RowDecision) {
  return { review, decision: toDecision(draft, review as Review) };
}

export interface DecidedMany {
  readonly done: number;
  readonly refused: readonly { readonly title: string; readonly reason: string }[];
}

/** `Decided 11 of 12. Refused: Title of 7 (is claimed by key_2). Next: Title of 13.` */
export function describeEnd({ done, refused }: DecidedMany, next: string | undefined): string {
  const count = refused.length === 0 ? `Decided ${done}.` : `Decided ${done} of ${done + refused.length}.`;
  const shown = refused.slice(0, 3).map(({ title, reason }) => `${title} (${reason})`);
  const more = refused.length > 3 ? ` and ${refused.length - 3} more` : '';
  const left = shown.length === 0 ? '' : ` Refused: ${shown.join('; ')}${more}.`;
  return `${count}${left} ${next === undefined ? 'No open review is left.' : `Next: ${next}`}`;
}
