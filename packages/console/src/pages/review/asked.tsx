import type { Json } from '@capstan/core/contracts/primitives';
import type { Review } from '@capstan/core/contracts/review';
import type { ReactElement } from 'react';
import { ValueDiff } from '../../diff/value-diff.tsx';
import { JsonTree } from '../../json/json-tree.tsx';
import { Panel } from '../../shared/parts.tsx';
import type { DecisionDraft } from './model.ts';

export interface AskedProps {
  readonly review: Review;
  readonly draft: DecisionDraft;
  readonly onDraft: (draft: DecisionDraft) => void;
}

/** The refused input and the reason; beside it the proposal, as a diff. */
export function Asked({ review, draft, onDraft }: AskedProps): ReactElement {
  const { payload } = review;
  const { error, validation_errors = [], proposals = [], input, details } = payload;
  const proposed = draft.action === 'edit' ? draft.value : proposals[draft.proposal]?.input;
  return (
    <Panel title="Request">
      <div className="flex flex-col gap-4">
        {error === undefined ? null : <p className="break-words text-sm text-failed">{error}</p>}
        {validation_errors.length === 0 ? null : (
          <ul className="flex flex-col gap-1 text-sm">
            {validation_errors.map(({ pointer, message }) => (
              <li key={`${pointer}${message}`}>
                <code className="rounded bg-failed-soft px-1 font-mono text-xs text-failed">
                  {pointer || '/'}
                </code>{' '}
                {message}
              </li>
            ))}
          </ul>
        )}
        {proposals.length < 2 ? null : (
          <fieldset className="flex flex-col gap-1 text-sm">
            <legend className="mb-1 text-muted">Proposals</legend>
            {proposals.map(({ source, note }, index) => (
              <label key={`${source}${index}`} className="flex items-center gap-2">
                <input
                  type="radio"
                  name="proposal"
                  checked={draft.proposal === index}
                  onChange={() =>
                    onDraft({ ...draft, proposal: index, value: proposals[index]?.input ?? null })
                  }
                />
                {source} {note === undefined ? '' : `– ${note}`}
              </label>
            ))}
          </fieldset>
        )}
        {input === undefined ? null : (
          <Input input={input} proposed={proposed} source={proposals[draft.proposal]?.source} />
        )}
        {details === undefined ? null : <JsonTree value={details} name="details" />}
      </div>
    </Panel>
  );
}

interface InputProps {
  readonly input: Json;
  readonly proposed: Json | undefined;
  readonly source: string | undefined;
}

function Input({ input, proposed, source }: InputProps): ReactElement {
  if (proposed === undefined) {
    return (
      <section>
        <h3 className="mb-1 text-muted">Original</h3>
        <JsonTree value={input} name="input" />
      </section>
    );
  }
  return (
    <section>
      <h3 className="text-muted">
        Original <span aria-hidden="true">→</span> {source === undefined ? 'yours' : `proposed by ${source}`}
      </h3>
      <ValueDiff before={input} after={proposed} />
    </section>
  );
}
