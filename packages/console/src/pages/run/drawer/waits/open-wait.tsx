import type { Run } from '@capstan/core/contracts/run';
import type { StepDetail } from '@capstan/core/contracts/run-step';
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { runGraphQuery } from '../../../../api/runs.ts';
import { Ago, Moment } from '../../../../shared/ago.tsx';
import { CopyButton } from '../../../../shared/copy-button.tsx';
import { commandsForEvent, describeOpenWait, examplePayload } from './wait-model.ts';

interface OpenWaitProps {
  readonly run: Run;
  readonly step: StepDetail;
  readonly wait: NonNullable<StepDetail['open_wait']>;
}

/** A wait for an outside event or a later answer: since when, until when, and how to end it. */
export function OpenWait({ run, step, wait }: OpenWaitProps): ReactElement | null {
  const awaited = describeOpenWait(step);
  if (awaited === null) return null;
  return (
    <section aria-label="Open wait" className="mb-3 rounded-lg border border-line p-3 text-sm">
      <p className="break-words">
        {awaited}
        {wait.until === null ? (
          ', without a limit'
        ) : (
          <>
            {' until '}
            <Moment at={wait.until} />, <Ago at={wait.until} />
          </>
        )}
        .
      </p>
      <p className="mt-0.5 text-muted">
        Since <Moment at={wait.since} />, <Ago at={wait.since} />
      </p>
      {step.event === undefined ? null : (
        <SendEvent run={run} stepId={step.id} name={step.event} eventKey={wait.event_key ?? null} />
      )}
    </section>
  );
}

interface SendEventProps {
  readonly run: Run;
  readonly stepId: string;
  readonly name: string;
  readonly eventKey: string | null;
}

function SendEvent({ run, stepId, name, eventKey }: SendEventProps): ReactElement | null {
  const { data: graph } = useQuery(runGraphQuery(run.run_id));
  if (graph === undefined) return null;
  const payload = examplePayload(graph.definition, stepId);
  const commands = commandsForEvent({ name, key: eventKey, payload }, location.origin);
  return (
    <>
      <p className="mt-2">To end the wait, send the event:</p>
      {(['curl', 'capstan'] as const).map((program) => (
        <div key={program} className="mt-1.5 flex items-start gap-1 rounded-md bg-sunken p-2">
          <code className="min-w-0 flex-1 whitespace-pre-wrap break-all font-mono text-xs">
            {commands[program]}
          </code>
          <CopyButton text={commands[program]} name={`the line of ${program}`} />
        </div>
      ))}
    </>
  );
}
