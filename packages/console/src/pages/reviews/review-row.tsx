import type { Json } from '@capstan/core/contracts/primitives';
import type { ReviewSummary } from '@capstan/core/contracts/review';
import { Link } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { readNumber } from '../../form/schema-model.ts';
import { isMedia, summarize } from '../../json/json-model.ts';
import { MediaView } from '../../media/media-view.tsx';
import { actionWords, titleOf } from '../../review/review-words.ts';
import { Ago } from '../../shared/ago.tsx';
import { Button, fieldClass } from '../../shared/parts.tsx';
import type { DecisionDraft } from '../review/model.ts';
import {
  cellOf,
  fieldsOf,
  obstacleOf,
  type ReviewColumn,
  type RowDecision,
  type RowField,
  writeField,
} from './table-model.ts';

export interface ReviewRowProps extends RowDecision {
  readonly columns: readonly ReviewColumn[];
  /** The id of the own key or person. */
  readonly me: string | undefined;
  readonly isNarrow: boolean;
  /** The keyboard is here. */
  readonly isAt: boolean;
  readonly isChosen: boolean;
  readonly isBusy: boolean;
  readonly onChoose: () => void;
  readonly onDraft: (draft: DecisionDraft) => void;
  readonly onDecide: () => void;
}

/** One review: its title and place, the inputs that differ, its answer, and the button that sends it. */
export function ReviewRow(props: ReviewRowProps): ReactElement {
  const { review, draft, me, isNarrow, isAt, isChosen, isBusy, onChoose, onDecide } = props;
  const obstacle = obstacleOf(review, draft, me);
  const title = titleOf(review);
  return (
    <tr className={isAt ? 'bg-accent-soft' : 'hover:bg-sunken/60'} aria-current={isAt ? 'true' : undefined}>
      <td className="w-8">
        <input
          type="checkbox"
          aria-label={`Choose ${title}`}
          checked={isChosen}
          disabled={isBusy}
          onChange={onChoose}
        />
      </td>
      <td>
        <Title review={review} />
        {isNarrow ? <Below {...props} /> : null}
      </td>
      {isNarrow ? null : <Beside {...props} />}
      <td className="text-right!">
        <Button
          disabled={isBusy || obstacle !== null}
          title={obstacle ?? undefined}
          aria-label={`${actionWords[draft.action]}: ${title}`}
          className="max-sm:h-auto max-sm:whitespace-normal"
          onClick={onDecide}
        >
          {actionWords[draft.action]}
        </Button>
      </td>
    </tr>
  );
}

/** The values of the row in columns of their own. */
function Beside(props: ReviewRowProps): ReactElement {
  const { review, columns } = props;
  return (
    <>
      {columns.map((column) => (
        <td key={column.pointer} className="wrap-anywhere">
          <Cell value={cellOf(review, column)} />
        </td>
      ))}
      <td>
        <Answer {...props} />
      </td>
    </>
  );
}

/** The same under the title, where the screen is narrow. */
function Below(props: ReviewRowProps): ReactElement {
  const { review, columns } = props;
  return (
    <>
      <dl className="mt-1 text-xs">
        {columns.map((column) => (
          <div key={column.pointer} className="flex gap-1.5">
            <dt className="text-muted">{column.name}</dt>
            <dd className="min-w-0 wrap-anywhere">
              <Cell value={cellOf(review, column)} />
            </dd>
          </div>
        ))}
      </dl>
      <div className="mt-2">
        <Answer {...props} />
      </div>
    </>
  );
}

function Title({ review }: { readonly review: ReviewSummary }): ReactElement {
  const { review_id, run_id, item, assignee, due_at, state } = review;
  const isLate = Date.parse(due_at) < Date.now();
  return (
    <>
      <Link
        to="/reviews/$reviewId"
        params={{ reviewId: review_id }}
        className="line-clamp-3 font-medium text-text wrap-anywhere hover:text-accent hover:underline"
      >
        {titleOf(review)}
      </Link>
      <span className="mt-0.5 flex flex-wrap gap-x-3 text-xs text-muted">
        {run_id === undefined ? null : (
          <Link to="/runs/$runId" params={{ runId: run_id }} title={run_id} className="hover:underline">
            run …{run_id.slice(-8)}
          </Link>
        )}
        {item === undefined ? null : <span>item {item}</span>}
        <span className={isLate ? 'text-failed' : ''}>
          due <Ago at={due_at} />
        </span>
        {state === 'claimed' ? (
          <span className="text-running">claimed by {assignee ?? 'someone'}</span>
        ) : null}
      </span>
    </>
  );
}

const longest = 120;

function Cell({ value }: { readonly value: Json | undefined }): ReactElement {
  if (value === undefined) return <span className="text-muted">–</span>;
  if (typeof value === 'string') {
    if (isMedia(value)) return <MediaView reference={value} />;
    return <>{value.length > longest ? `${value.slice(0, longest)}…` : value}</>;
  }
  if (typeof value === 'object' && value !== null) {
    return <span className="text-muted">{summarize(value)}</span>;
  }
  return <span className="figure">{JSON.stringify(value)}</span>;
}

/** The proposal of a correction, or the fields of the answer. */
function Answer({ review, draft, me, isBusy, onDraft }: ReviewRowProps): ReactElement {
  const fields = fieldsOf(review, draft);
  const obstacle = obstacleOf(review, draft, me);
  if (draft.action === 'approve') return <Proposal review={review} />;
  return (
    <div className="flex min-w-32 flex-col gap-1.5">
      {(fields ?? []).map((field) => (
        <Field
          key={field.name}
          field={field}
          title={titleOf(review)}
          isBusy={isBusy}
          onChange={(value) => onDraft(writeField(draft, field.name, value))}
        />
      ))}
      {obstacle === null ? null : <span className="text-xs text-muted">{obstacle}</span>}
    </div>
  );
}

function Proposal({ review }: { readonly review: ReviewSummary }): ReactElement {
  const [first] = review.payload.proposals ?? [];
  return (
    <ul className="flex flex-col gap-1 text-sm">
      {(first?.patch ?? []).slice(0, 3).map(({ op, path, value }) => (
        <li key={String(path)} className="wrap-anywhere">
          <code className="font-mono text-xs text-muted">{String(path)}</code>{' '}
          {op === 'remove' ? (
            'removed'
          ) : (
            <span className="text-done">
              <span aria-hidden="true">→</span> {JSON.stringify(value)}
            </span>
          )}
        </li>
      ))}
    </ul>
  );
}

interface FieldProps {
  readonly field: RowField;
  /** Of the review, for screen readers. */
  readonly title: string;
  readonly isBusy: boolean;
  readonly onChange: (value: Json | undefined) => void;
}

function Field({ field, title, isBusy, onChange }: FieldProps): ReactElement {
  const { name, kind, choices, value } = field;
  const label = `${name === 'usd' ? 'New budget (USD)' : name}: ${title}`;
  const isNumber = kind === 'number' && name !== 'usd';
  const [typed, setTyped] = useState('');
  // `2.50` stays as it is typed, and is the number 2.5.
  const shown = isNumber && typed !== '' && readNumber(typed) === value ? typed : String(value ?? '');
  const look = `${fieldClass} w-full min-w-0`;
  if (kind === 'boolean' || kind === 'choice') {
    const all = kind === 'boolean' ? [true, false] : choices;
    const at = all.indexOf(value as never);
    return (
      <label className="flex items-center gap-1.5 text-xs text-muted max-sm:flex-col max-sm:items-start max-sm:gap-0.5">
        {name}
        <select
          aria-label={label}
          disabled={isBusy}
          className={look}
          value={at < 0 ? '' : String(at)}
          onChange={({ target }) => onChange(target.value === '' ? undefined : all[Number(target.value)])}
        >
          <option value="">choose</option>
          {all.map((one, index) => (
            <option key={JSON.stringify(one)} value={index}>
              {kind === 'boolean' ? (one ? 'yes' : 'no') : String(one)}
            </option>
          ))}
        </select>
      </label>
    );
  }
  return (
    <label className="flex items-center gap-1.5 text-xs text-muted max-sm:flex-col max-sm:items-start max-sm:gap-0.5">
      {name === 'usd' ? 'USD' : name}
      <input
        aria-label={label}
        disabled={isBusy}
        inputMode={kind === 'number' ? 'decimal' : undefined}
        className={look}
        value={shown}
        onChange={({ target }) => {
          setTyped(target.value);
          const read = isNumber ? readNumber(target.value) : target.value;
          onChange(target.value === '' ? undefined : read);
        }}
      />
    </label>
  );
}
