import type { CapabilitySpec } from '@capstan/core/contracts/capability';
import type { Json, Priority } from '@capstan/core/contracts/primitives';
import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useDeferredValue, useState } from 'react';
import { askRoute } from '../../api/capabilities.ts';
import { DecisionLanes } from '../../decision/decision-lanes.tsx';
import { SchemaForm } from '../../form/schema-form.tsx';
import { createValue } from '../../form/schema-model.ts';
import { Panel } from '../../shared/parts.tsx';
import { PriorityField } from '../../shared/priority-field.tsx';
import { QueryView } from '../../shared/query-view.tsx';

/** The choice for a call with this input, with the reasons against other instances; no call is made. */
export function WhyTab({
  name,
  spec,
}: {
  readonly name: string;
  readonly spec: CapabilitySpec | undefined;
}): ReactElement {
  const schema = spec?.input ?? {};
  const [written, setInput] = useState<Json>();
  const input = written ?? createValue(schema, schema);
  const [priority, setPriority] = useState<Priority>('standard');
  const asked = useDeferredValue(JSON.stringify(input));
  const query = useQuery({
    queryKey: ['route', name, asked, priority],
    queryFn: () => askRoute({ capability: name, input: JSON.parse(asked) as Json, priority }),
    placeholderData: (known) => known,
    refetchInterval: 5_000,
  });
  return (
    <div className="grid items-start gap-4 lg:grid-cols-2">
      <Panel title="Input">
        <SchemaForm label="Input" schema={schema} value={input} onChange={setInput} />
        <div className="mt-4 border-t border-line pt-3 text-sm">
          <PriorityField value={priority} onChange={setPriority} />
        </div>
      </Panel>
      <Panel title="Routing preview">
        <QueryView query={query}>
          {(decision) => (
            <>
              <p className="mb-3 text-sm">{decision.reason}</p>
              <DecisionLanes candidates={decision.candidates} />
            </>
          )}
        </QueryView>
      </Panel>
    </div>
  );
}
