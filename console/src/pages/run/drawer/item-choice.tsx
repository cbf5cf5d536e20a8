import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import type { RunStepItem } from '../../../../../src/contracts/run.ts';
import { askPlainly } from '../../../api/client.ts';
import { describeItems } from '../../../graph/node-model.ts';
import { fieldClass } from '../../../shared/parts.tsx';
import { lookOf } from '../../../shared/state.ts';

export interface ItemChoiceProps {
  readonly runId: string;
  readonly stepId: string;
  readonly items: Readonly<Record<string, number>>;
  readonly item: number | undefined;
  readonly onChoose: (item: number | undefined) => void;
}

interface StepItems {
  readonly items: readonly RunStepItem[];
}

/** Of a step with `for_each`: the whole, or one of its items. */
export function ItemChoice({ runId, stepId, items, item, onChoose }: ItemChoiceProps): ReactElement {
  const query = useQuery({
    queryKey: ['run', runId, 'items', stepId, JSON.stringify(items)],
    queryFn: () => askPlainly<StepItems>(`/v1/runs/${runId}/steps/${stepId}/items?limit=200`),
  });
  return (
    <label className="mb-2 flex flex-wrap items-center gap-2 text-sm text-muted">
      {describeItems(items)}; look at
      <select
        className={fieldClass}
        value={item ?? ''}
        onChange={({ target }) => onChoose(target.value === '' ? undefined : Number(target.value))}
      >
        <option value="">the step as a whole</option>
        {query.data?.items.map((one) => (
          <option key={one.item} value={one.item}>
            item {one.item}, {lookOf(one.state).word}
          </option>
        ))}
      </select>
    </label>
  );
}
