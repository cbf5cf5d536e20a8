import type { Review } from '@capstan/core/contracts/review';
import type { ReactElement, ReactNode } from 'react';
import { SchemaForm } from '../../form/schema-form.tsx';
import type { FormVerdict } from '../../form/standing-errors.ts';
import type { CeilingAdvice } from '../../review/ceiling.ts';
import { CeilingHint } from '../../review/ceiling-hint.tsx';
import { actionWords, effectWords } from '../../review/review-words.ts';
import { areaClass, fieldClass, Panel } from '../../shared/parts.tsx';
import { type DecisionDraft, offeredActions } from './model.ts';

export interface DecisionFormProps {
  readonly review: Review;
  readonly draft: DecisionDraft;
  readonly onDraft: (draft: DecisionDraft) => void;
  /** For a budget's review. */
  readonly advice: CeilingAdvice | null;
  readonly children: ReactNode;
}

/** The decision: the action, its value, and its effect. */
export function DecisionForm({ review, draft, onDraft, advice, children }: DecisionFormProps): ReactElement {
  return (
    <Panel title="Your decision">
      <div className="flex flex-col gap-4">
        <fieldset>
          <legend className="sr-only">Action</legend>
          <div className="flex flex-wrap gap-1.5">
            {offeredActions(review).map((action) => (
              <label
                key={action}
                className="cursor-pointer rounded-md border border-line px-2.5 py-1 text-sm has-checked:border-accent has-checked:bg-accent-soft has-checked:font-medium has-focus-visible:outline-2 has-focus-visible:outline-accent"
              >
                <input
                  type="radio"
                  name="action"
                  className="sr-only"
                  checked={draft.action === action}
                  onChange={() => onDraft({ ...draft, action })}
                />
                {actionWords[action]}
              </label>
            ))}
          </div>
        </fieldset>
        <p className="text-sm text-muted">{effectWords[draft.action]}</p>
        <ActionFields review={review} draft={draft} onDraft={onDraft} advice={advice} />
        {review.kind === 'escalation' && (draft.action === 'edit' || draft.action === 'approve') ? (
          <label className="flex items-start gap-2 text-sm">
            <input
              type="checkbox"
              role="switch"
              aria-checked={draft.remember}
              className="mt-1"
              checked={draft.remember}
              onChange={() => onDraft({ ...draft, remember: !draft.remember })}
            />
            <span>
              Remember as a skill
              <span className="block text-xs text-muted">{effectOfRemembering(review)}</span>
            </span>
          </label>
        ) : null}
        <label className="flex flex-col gap-1 text-sm">
          Note
          <input
            className={fieldClass}
            value={draft.note}
            placeholder="Optional note for the audit trail"
            onChange={({ target }) => onDraft({ ...draft, note: target.value })}
          />
        </label>
        {children}
      </div>
    </Panel>
  );
}

function effectOfRemembering({ payload: { proposals = [] } }: Review): string {
  const similar = 'Similar failures are then corrected without a review.';
  const isEvidence = proposals.some(({ repair }) => repair !== undefined);
  return isEvidence
    ? `${similar} After three equal decisions, so is this mistake with other values.`
    : similar;
}

const textLabels: Partial<Record<DecisionDraft['action'], string>> = {
  advise: 'What the model should do',
  merge: 'Id of the skill to keep',
  narrow: 'Error patterns (RE2), one per line',
};

/** The faults of the refused input. */
function verdictOf({ payload: { validation_errors = [], input = {} } }: Review): FormVerdict {
  return { errors: validation_errors, judged: input };
}

function ActionFields({
  review,
  draft,
  onDraft,
  advice,
}: Omit<DecisionFormProps, 'children'>): ReactElement | null {
  const { action } = draft;
  const isValue = action === 'output' || (action === 'edit' && review.kind !== 'skill');
  if (isValue) {
    return (
      <SchemaForm
        label={action === 'output' ? 'Output' : 'Input'}
        schema={review.payload.schema ?? {}}
        value={action === 'output' ? draft.output : draft.value}
        verdict={action === 'edit' ? verdictOf(review) : undefined}
        onChange={(written) =>
          onDraft(action === 'output' ? { ...draft, output: written } : { ...draft, value: written })
        }
      />
    );
  }
  if (action === 'raise') {
    return (
      <>
        <label className="flex flex-col gap-1 text-sm">
          New budget (USD)
          <input
            type="number"
            min="0"
            step="any"
            className={`${fieldClass} w-40`}
            value={draft.usd}
            onChange={({ target }) => onDraft({ ...draft, usd: target.value })}
          />
        </label>
        <CeilingHint advice={advice} onTake={(usd) => onDraft({ ...draft, usd })} />
      </>
    );
  }
  const label = action === 'edit' ? 'Instructions of the skill' : textLabels[action];
  if (label === undefined) return null;
  return (
    <label className="flex flex-col gap-1 text-sm">
      {label}
      <textarea
        rows={5}
        className={areaClass}
        value={draft.text}
        onChange={({ target }) => onDraft({ ...draft, text: target.value })}
      />
    </label>
  );
}
