import type { ReviewAction, ReviewSummary } from '@capstan/core/contracts/review';
import type { ReactElement } from 'react';
import { actionWords, effectWords } from '../../review/review-words.ts';
import { ConfirmButton } from '../../shared/confirm-button.tsx';
import { Button } from '../../shared/parts.tsx';
import { commonActions, describeDecisions, type RowDecision } from './table-model.ts';
import type { Deciding } from './use-deciding.ts';

export interface DecideBarProps {
  readonly chosen: readonly ReviewSummary[];
  /** Chosen rows that can be decided as they are. */
  readonly ready: readonly RowDecision[];
  readonly progress: Deciding['progress'];
  readonly onDecide: () => void;
  /** The same decision for all that are chosen. */
  readonly onAll: (action: ReviewAction) => void;
  readonly onNone: () => void;
}

const asksFirst: ReadonlySet<ReviewAction> = new Set(['reject', 'cancel', 'retire', 'skip']);

/** What is chosen, and the buttons that decide it. It keeps its place, so that rows do not move. */
export function DecideBar(props: DecideBarProps): ReactElement {
  const { chosen, ready, progress, onDecide, onAll, onNone } = props;
  const isBusy = progress !== null;
  return (
    <div className="mb-3 flex min-h-12 flex-wrap items-center gap-2 rounded-lg border border-line bg-raised px-3 py-2 text-sm">
      {progress === null ? (
        <span className="figure mr-2">
          {chosen.length === 0 ? 'Choose reviews to decide several at once.' : `${chosen.length} chosen`}
        </span>
      ) : (
        <span className="flex items-center gap-2">
          <progress aria-label="Decisions sent" max={progress.all} value={progress.sent} />
          <span className="figure">
            {progress.sent} of {progress.all} sent
          </span>
        </span>
      )}
      {chosen.length === 0 ? null : (
        <>
          <Button look="primary" disabled={isBusy || ready.length === 0} onClick={onDecide}>
            {describeDecisions(ready)}
          </Button>
          {ready.length === chosen.length ? null : (
            <span className="text-muted">{chosen.length - ready.length} not ready</span>
          )}
          {commonActions(chosen).map((action) => (
            <Further key={action} action={action} count={chosen.length} isBusy={isBusy} onAll={onAll} />
          ))}
          <Button look="bare" icon="x" disabled={isBusy} onClick={onNone}>
            Choose none
          </Button>
        </>
      )}
    </div>
  );
}

interface FurtherProps extends Pick<DecideBarProps, 'onAll'> {
  readonly action: ReviewAction;
  readonly count: number;
  readonly isBusy: boolean;
}

function Further({ action, count, isBusy, onAll }: FurtherProps): ReactElement {
  const word = actionWords[action];
  if (!asksFirst.has(action)) {
    return (
      <Button disabled={isBusy} onClick={() => onAll(action)}>
        {word} all
      </Button>
    );
  }
  const reviews = `${count} ${count === 1 ? 'review' : 'reviews'}`;
  return (
    <ConfirmButton
      disabled={isBusy}
      question={{
        title: `${word}: ${reviews}?`,
        about: <p>{effectWords[action]} A decision cannot be taken back.</p>,
        confirm: `${word}: ${reviews}`,
        keep: 'Decide nothing',
      }}
      onConfirm={() => onAll(action)}
    >
      {word} all …
    </ConfirmButton>
  );
}
