import type { ReviewSummary } from '@capstan/core/contracts/review';
import { useQuery } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { sessionQuery } from '../../api/session.ts';
import { useServerAway } from '../../live/live.tsx';
import { useKeys } from '../../shared/keys.ts';
import { Panel, tableClass } from '../../shared/parts.tsx';
import { useIsNarrow } from '../../shared/use-is-narrow.ts';
import type { DecisionDraft } from '../review/model.ts';
import { DecideBar } from './decide-bar.tsx';
import { ReviewRow } from './review-row.tsx';
import { beginRow, groupReviews, obstacleOf, type ReviewGroup, type RowDecision } from './table-model.ts';
import { useDeciding } from './use-deciding.ts';

const nothing: ReadonlySet<string> = new Set();

function toggled(chosen: ReadonlySet<string>, ids: readonly string[]): ReadonlySet<string> {
  const areAll = ids.every((id) => chosen.has(id));
  return areAll ? new Set([...chosen].filter((id) => !ids.includes(id))) : new Set([...chosen, ...ids]);
}

type Drafts = ReadonlyMap<string, DecisionDraft>;

/** Rows in the order in which they are drawn; `decided` ones are gone. */
function useRows(all: readonly ReviewSummary[]) {
  const me = useQuery(sessionQuery).data?.key_id;
  const [drafts, setDrafts] = useState<Drafts>(new Map());
  const [picked, setPicked] = useState(nothing);
  const deciding = useDeciding(all);
  const reviews = all.filter(({ review_id }) => !deciding.decided.has(review_id));
  const groups = groupReviews(reviews);
  const ordered = groups.flatMap((group) => group.reviews);
  const rowOf = (review: ReviewSummary): RowDecision => ({
    review,
    draft: drafts.get(review.review_id) ?? beginRow(review),
  });
  const isReady = ({ review, draft }: RowDecision): boolean => obstacleOf(review, draft, me) === null;
  const chosen = ordered.filter(({ review_id }) => picked.has(review_id));
  return {
    me,
    deciding,
    groups,
    ordered,
    rowOf,
    isReady,
    chosen,
    picked,
    choose: (ids: readonly string[]) => setPicked(toggled(picked, ids)),
    chooseNone: () => setPicked(nothing),
    write: (id: string, draft: DecisionDraft) => setDrafts(new Map(drafts).set(id, draft)),
  };
}

/** Tables of open reviews, each decided in its row or with others. */
export function ReviewTables({ reviews }: { readonly reviews: readonly ReviewSummary[] }): ReactElement {
  const navigate = useNavigate({ from: '/reviews' });
  const isAway = useServerAway() !== null;
  const rows = useRows(reviews);
  const { ordered, chosen, deciding, rowOf, isReady } = rows;
  const [wanted, setPlace] = useState(0);
  const place = Math.min(wanted, ordered.length - 1);
  const at = ordered[place];
  const isBusy = isAway || deciding.progress !== null;
  const ready = chosen.map(rowOf).filter(isReady);
  const decide = (decisions: readonly RowDecision[]): void => {
    if (!isBusy) deciding.decide(decisions);
  };
  const open = (): void => {
    if (at !== undefined) void navigate({ to: '/reviews/$reviewId', params: { reviewId: at.review_id } });
  };
  useKeys({
    j: () => setPlace(Math.min(ordered.length - 1, place + 1)),
    k: () => setPlace(Math.max(0, place - 1)),
    s: () => at !== undefined && rows.choose([at.review_id]),
    A: () => rows.choose(ordered.map(({ review_id }) => review_id)),
    a: () => decide(chosen.length > 0 ? ready : at === undefined ? [] : [rowOf(at)].filter(isReady)),
    Enter: open,
    e: open,
  });
  return (
    <>
      <DecideBar
        chosen={chosen}
        ready={ready}
        progress={deciding.progress}
        onDecide={() => decide(ready)}
        onAll={(action) =>
          decide(chosen.map(rowOf).map(({ review, draft }) => ({ review, draft: { ...draft, action } })))
        }
        onNone={rows.chooseNone}
      />
      <div className="flex flex-col gap-4">
        {rows.groups.map((group) => (
          <Panel key={group.key} isTight title={group.heading}>
            <GroupTable group={group} rows={rows} at={at} isBusy={isBusy} onDecide={decide} />
          </Panel>
        ))}
      </div>
    </>
  );
}

interface GroupTableProps {
  readonly group: ReviewGroup;
  readonly rows: ReturnType<typeof useRows>;
  readonly at: ReviewSummary | undefined;
  readonly isBusy: boolean;
  readonly onDecide: (rows: readonly RowDecision[]) => void;
}

function GroupTable({ group, rows, at, isBusy, onDecide }: GroupTableProps): ReactElement {
  const isNarrow = useIsNarrow();
  const ids = group.reviews.map(({ review_id }) => review_id);
  return (
    <section className="scrolls" tabIndex={0} aria-label={group.heading}>
      <table className={tableClass}>
        <thead>
          <tr>
            <th className="w-8">
              <input
                type="checkbox"
                aria-label={`Choose all of ${group.heading}`}
                checked={ids.every((id) => rows.picked.has(id))}
                onChange={() => rows.choose(ids)}
              />
            </th>
            <th>Review</th>
            {(isNarrow ? [] : group.columns).map(({ pointer, name }) => (
              <th key={pointer} title={pointer}>
                {name}
              </th>
            ))}
            {isNarrow ? null : <th>Answer</th>}
            <th>
              <span className="sr-only">Decide</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {group.reviews.map((review) => {
            const row = rows.rowOf(review);
            return (
              <ReviewRow
                key={review.review_id}
                {...row}
                columns={group.columns}
                isNarrow={isNarrow}
                me={rows.me}
                isAt={review === at}
                isChosen={rows.picked.has(review.review_id)}
                isBusy={isBusy}
                onChoose={() => rows.choose([review.review_id])}
                onDraft={(draft) => rows.write(review.review_id, draft)}
                onDecide={() => onDecide([row])}
              />
            );
          })}
        </tbody>
      </table>
    </section>
  );
}
