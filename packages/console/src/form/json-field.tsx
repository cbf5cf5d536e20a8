import type { Json } from '@capstan/core/contracts/primitives';
import { findLostNumbers } from '@capstan/core/json/numbers';
import { type ReactElement, useState } from 'react';
import { areaClass } from '../shared/parts.tsx';
import { parseJson } from './schema-model.ts';

export interface JsonFieldProps {
  readonly label: string;
  readonly value: Json;
  readonly onChange: (value: Json) => void;
}

function describeFault(text: string): string {
  const [lost] = findLostNumbers(text);
  return lost === undefined
    ? 'This is not JSON yet.'
    : `${lost.pointer} ${lost.message}; ${lost.suggestion}.`;
}

/** Any value as JSON; while the text is invalid, the last valid value stays. */
export function JsonField({ label, value, onChange }: JsonFieldProps): ReactElement {
  const [text, setText] = useState(() => JSON.stringify(value, null, 2));
  const isWrong = parseJson(text) === undefined;
  const known = parseJson(text);
  const isStale = !isWrong && JSON.stringify(known) !== JSON.stringify(value);
  return (
    <div>
      <textarea
        aria-label={`${label} as JSON`}
        aria-invalid={isWrong}
        spellCheck={false}
        rows={Math.min(18, Math.max(4, text.split('\n').length))}
        className={`${areaClass} aria-invalid:border-failed`}
        value={isStale ? JSON.stringify(value, null, 2) : text}
        onChange={({ target }) => {
          setText(target.value);
          const parsed = parseJson(target.value);
          if (parsed !== undefined) onChange(parsed);
        }}
      />
      {isWrong ? <p className="text-xs text-failed">{describeFault(text)}</p> : null}
    </div>
  );
}
