import { StepOnBudget } from '@capstan/core/contracts/decision';
import type { JsonObject } from '@capstan/core/contracts/primitives';
import { readInputs } from '@capstan/core/routing/replay';
import type { InstanceSnapshot } from '@capstan/core/routing/types';
import { type ReactElement, useMemo, useState } from 'react';
import { fieldClass } from '../shared/parts.tsx';
import { PriorityField } from '../shared/priority-field.tsx';
import { DecisionLanes } from './decision-lanes.tsx';
import { shortEndpoint } from './lanes-model.ts';
import {
  changeNothing,
  chooseWith,
  describeWhatIfHold,
  type WhatIfChange,
  winnerOf,
} from './what-if-model.ts';

/** The same decision with movable inputs; `choose` itself answers. */
export function WhatIf({
  inputs,
  chosen,
}: {
  readonly inputs: JsonObject;
  readonly chosen: string | null;
}): ReactElement {
  const known = useMemo(() => readInputs(inputs), [inputs]);
  const [change, setChange] = useState<WhatIfChange>(() => changeNothing(known));
  const { decision, hold } = chooseWith(known, change);
  const winner = winnerOf(decision);
  return (
    <section aria-label="What if" className="rounded-md border border-line bg-ground p-3 text-sm">
      <div className="mb-3 flex flex-wrap items-center gap-3">
        <PriorityField value={change.priority} onChange={(priority) => setChange({ ...change, priority })} />
        <UsdField
          name="Budget"
          placeholder="none"
          value={change.ceilingUsd}
          onChange={(ceilingUsd) => setChange({ ...change, ceilingUsd })}
        />
        <UsdField
          name="Room"
          placeholder="any"
          value={change.roomUsd}
          onChange={(roomUsd) => setChange({ ...change, roomUsd })}
        />
        <label className="flex items-center gap-1.5">
          Without room
          <select
            className={fieldClass}
            value={change.onBudget}
            onChange={({ target }) => setChange({ ...change, onBudget: StepOnBudget.parse(target.value) })}
          >
            {StepOnBudget.options.map((way) => (
              <option key={way}>{way}</option>
            ))}
          </select>
        </label>
      </div>
      <ul className="mb-3 flex flex-col gap-1.5">
        {known.instances.map((instance) => (
          <InstanceChange
            key={instance.instance_id}
            instance={instance}
            change={change}
            onChange={setChange}
          />
        ))}
      </ul>
      <p aria-live="polite" className={`mb-3 font-medium ${winner === chosen ? '' : 'text-accent'}`}>
        {winner === chosen
          ? 'It would go to the same instance.'
          : `It would go to ${winner === null ? 'no instance' : shortEndpoint(winner)} instead.`}
      </p>
      {hold === null ? null : <p className="mb-3 figure">{describeWhatIfHold(hold)}</p>}
      <DecisionLanes candidates={decision.candidates} />
    </section>
  );
}

interface UsdFieldProps {
  readonly name: string;
  readonly placeholder: string;
  readonly value: number | null;
  readonly onChange: (usd: number | null) => void;
}

function UsdField({ name, placeholder, value, onChange }: UsdFieldProps): ReactElement {
  return (
    <label className="flex items-center gap-1.5">
      {name}
      <input
        type="number"
        min="0"
        step="any"
        placeholder={placeholder}
        className={`${fieldClass} w-24`}
        value={value ?? ''}
        onChange={({ target }) => onChange(target.value === '' ? null : Number(target.value))}
      />
    </label>
  );
}

interface InstanceChangeProps {
  readonly instance: InstanceSnapshot;
  readonly change: WhatIfChange;
  readonly onChange: (change: WhatIfChange) => void;
}

function switched(set: ReadonlySet<string>, id: string): ReadonlySet<string> {
  const next = new Set(set);
  if (!next.delete(id)) next.add(id);
  return next;
}

function InstanceChange({ instance, change, onChange }: InstanceChangeProps): ReactElement {
  const { instance_id: id, endpoint, rate_usd } = instance;
  const factor = change.prices[id] ?? 1;
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-1">
      <span className="w-36 truncate font-mono text-xs">{shortEndpoint(endpoint)}</span>
      {rate_usd === 0 ? null : (
        <label className="flex items-center gap-1 text-xs text-muted">
          price
          <input
            type="range"
            min="-2"
            max="2"
            step="0.1"
            value={Math.log2(factor)}
            onChange={({ target }) =>
              onChange({ ...change, prices: { ...change.prices, [id]: 2 ** Number(target.value) } })
            }
            className="w-24 accent-accent"
          />
          <span className="figure">× {factor.toFixed(2)}</span>
        </label>
      )}
      <label className="flex items-center gap-1 text-xs">
        <input
          type="checkbox"
          checked={change.down.has(id)}
          onChange={() => onChange({ ...change, down: switched(change.down, id) })}
        />
        down
      </label>
      <label className="flex items-center gap-1 text-xs">
        <input
          type="checkbox"
          checked={change.full.has(id)}
          onChange={() => onChange({ ...change, full: switched(change.full, id) })}
        />
        full
      </label>
    </li>
  );
}
