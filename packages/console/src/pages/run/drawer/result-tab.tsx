import { describeDecided } from '@capstan/core/repair/describe-decided';
import { Link } from '@tanstack/react-router';
import type { ReactElement } from 'react';
import { JsonTree } from '../../../json/json-tree.tsx';
import { Moment } from '../../../shared/ago.tsx';
import { formatDuration } from '../../../shared/format.ts';
import { Facts, linkClass } from '../../../shared/parts.tsx';
import { changedPointers, describeCached } from './result-model.ts';
import type { StepTabProps } from './step-tab-props.ts';

/** Input and output; corrected values are marked. */
export function ResultTab({ step }: StepTabProps): ReactElement {
  const last = step.revisions?.at(-1);
  const input = last?.input ?? step.input;
  const marked =
    last === undefined || step.input === undefined ? undefined : changedPointers(step.input, last.input);
  const isWhole = step.items !== undefined && step.item === undefined;
  const took =
    step.started_at === null || step.finished_at === null
      ? null
      : formatDuration(Date.parse(step.finished_at) - Date.parse(step.started_at));
  return (
    <div className="flex flex-col gap-4">
      <Facts
        facts={[
          ['started', step.started_at === null ? null : <Moment key="started" at={step.started_at} />],
          ['took', took],
          // Each item shows its own.
          ['instance', isWhole ? null : (step.endpoint ?? null)],
          ['cached', describeCached(step)],
          [
            'stopped',
            step.attempts.at(-1)?.decision?.stopped === undefined ? null : 'its budgets had no more room',
          ],
          ['dispatch', step.dispatch === undefined ? null : `${step.dispatch.how}: ${step.dispatch.message}`],
          ['after', step.depends_on.length === 0 ? null : step.depends_on.join(', ')],
          ['child run', step.sub_run_id === undefined ? null : <RunLink key="run" id={step.sub_run_id} />],
          ['result of', step.reused_from === undefined ? null : <RunLink key="from" id={step.reused_from} />],
          ['skill', step.skill_id === undefined ? null : <SkillLink key="skill" id={step.skill_id} />],
          ['repaired', describeDecided(step.as_decided)],
          ['review', step.review_id === undefined ? null : <ReviewLink key="review" id={step.review_id} />],
        ]}
      />
      {input === undefined ? null : (
        <section>
          <h3 className="mb-1 text-muted">
            Input{last === undefined ? '' : `, corrected by ${last.source} (${step.revisions?.length} ×)`}
          </h3>
          <JsonTree value={input} name="input" {...(marked === undefined ? {} : { marked })} />
        </section>
      )}
      <section>
        <h3 className="mb-1 text-muted">Output</h3>
        {step.output === undefined ? (
          <p className="text-sm text-muted">{step.finished_at === null ? 'No output yet' : 'No output'}</p>
        ) : (
          <>
            {typeof step.next_cursor === 'string' && Array.isArray(step.output) ? (
              <p className="mb-1 text-sm text-muted">
                These are the outputs of the first {step.output.length} items. Choose an item to see its own.
              </p>
            ) : null}
            <JsonTree
              value={step.output}
              name="output"
              isOfItems={isWhole && step.max_rounds === undefined && Array.isArray(step.output)}
            />
          </>
        )}
      </section>
    </div>
  );
}

function RunLink({ id }: { readonly id: string }): ReactElement {
  return (
    <Link to="/runs/$runId" params={{ runId: id }} className={`${linkClass} break-all`}>
      {id}
    </Link>
  );
}

function SkillLink({ id }: { readonly id: string }): ReactElement {
  return (
    <Link to="/skills/$skillId" params={{ skillId: id }} className={`${linkClass} break-all`}>
      {id}
    </Link>
  );
}

function ReviewLink({ id }: { readonly id: string }): ReactElement {
  return (
    <Link to="/reviews/$reviewId" params={{ reviewId: id }} className={`${linkClass} break-all`}>
      {id}
    </Link>
  );
}
