import type { Priority } from '@capstan/core/contracts/primitives';
import type { ReactElement } from 'react';
import { fieldClass } from './parts.tsx';

/** Written out: the contract's own list would bring zod into the page. */
const priorities: readonly Priority[] = ['interactive', 'standard', 'batch'];

export interface PriorityFieldProps {
  readonly value: Priority;
  readonly onChange: (priority: Priority) => void;
}

export function PriorityField({ value, onChange }: PriorityFieldProps): ReactElement {
  return (
    <label className="flex items-center gap-1.5">
      Priority
      <select
        className={fieldClass}
        value={value}
        onChange={({ target }) => onChange(priorities.find((one) => one === target.value) ?? value)}
      >
        {priorities.map((one) => (
          <option key={one}>{one}</option>
        ))}
      </select>
    </label>
  );
}
