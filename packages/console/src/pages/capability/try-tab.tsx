import type { CapabilitySpec } from '@capstan/core/contracts/capability';
import type { Json } from '@capstan/core/contracts/primitives';
import { useMutation, useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { callContentQuery } from '../../api/calls.ts';
import { callCapability, checkInput } from '../../api/capabilities.ts';
import { DecisionLanes } from '../../decision/decision-lanes.tsx';
import { SchemaForm } from '../../form/schema-form.tsx';
import { createValue } from '../../form/schema-model.ts';
import { JsonTree } from '../../json/json-tree.tsx';
import { Icon } from '../../shared/icon.tsx';
import { Button, EmptyState, Panel, Skeleton } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';

interface TryCallProps {
  readonly name: string;
  readonly spec: CapabilitySpec | undefined;
  /** The decision of a call whose input the form begins with, where its contents are kept. */
  readonly from: string | undefined;
}

export function TryTab({ name, spec, from }: TryCallProps): ReactElement {
  const query = useQuery({ ...callContentQuery(from ?? ''), enabled: from !== undefined });
  if (from !== undefined && query.isPending) return <Skeleton />;
  return (
    <>
      {query.error === null ? null : <ProblemView error={query.error} />}
      <TryForm name={name} spec={spec} given={query.data?.input} />
    </>
  );
}

/** A routed call without a pipeline. It is real, so it may cost money. */
function TryForm({
  name,
  spec,
  given,
}: Omit<TryCallProps, 'from'> & { readonly given: Json | undefined }): ReactElement {
  const schema = spec?.input ?? {};
  const [written, setInput] = useState<Json>();
  const input = written ?? given ?? createValue(schema, schema);
  const call = useMutation({ mutationFn: () => callCapability(name, { input }) });
  const check = useMutation({ mutationFn: (given: Json) => checkInput(name, given) });
  const verdict =
    check.variables === undefined ? undefined : { errors: check.data?.errors ?? [], judged: check.variables };
  const proposal = check.data?.proposals[0];
  return (
    <div className="grid items-start gap-4 lg:grid-cols-2">
      <Panel title="Input">
        <SchemaForm label="Input" schema={schema} value={input} verdict={verdict} onChange={setInput} />
        {check.data?.valid === true ? (
          <p className="mt-3 flex items-center gap-1.5 text-sm text-done">
            <Icon name="circle-check" size={15} /> The input matches the schema.
          </p>
        ) : null}
        {proposal === undefined ? null : (
          <p className="mt-3 flex flex-wrap items-center gap-2 rounded-md bg-person-soft px-3 py-2 text-sm">
            {proposal.note ?? 'One correction makes it valid.'}
            <Button onClick={() => setInput(proposal.input)}>Use it</Button>
          </p>
        )}
        {check.error === null ? null : <ProblemView error={check.error} />}
        <div className="mt-4 flex gap-2 border-t border-line pt-3">
          <Button onClick={() => check.mutate(input)} disabled={check.isPending}>
            Check
          </Button>
          <Button look="primary" icon="play" onClick={() => call.mutate()} disabled={call.isPending}>
            {call.isPending ? 'Calling …' : 'Call'}
          </Button>
        </div>
      </Panel>
      <Panel title="Answer">
        {call.error === null ? null : <ProblemView error={call.error} />}
        {call.data === undefined ? (
          call.error === null && (
            <EmptyState title="No call yet">The output and where the call went show here.</EmptyState>
          )
        ) : (
          <div className="flex flex-col gap-4">
            <JsonTree value={call.data.output} name="output" />
            <p className="text-sm text-muted">{call.data.routing.reason}</p>
            <DecisionLanes candidates={call.data.routing.candidates} />
          </div>
        )}
      </Panel>
    </div>
  );
}
