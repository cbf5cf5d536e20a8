import type { Json } from '@capstan/core/contracts/primitives';
import type { ReactElement } from 'react';
import { TextDiff } from './text-diff.tsx';

/** The difference of two values, line by line. */
export function ValueDiff({ before, after }: { readonly before: Json; readonly after: Json }): ReactElement {
  return <TextDiff before={JSON.stringify(before, null, 2)} after={JSON.stringify(after, null, 2)} />;
}
