import { BaseEdge, type EdgeProps } from '@xyflow/react';
import type { ReactElement } from 'react';

export interface LineEdgeData extends Record<string, unknown> {
  readonly path: string;
  readonly isCritical: boolean;
  readonly isDim: boolean;
}

/** Follows the route of the layout, around the nodes in between. */
export function LineEdge({ id, data }: EdgeProps & { readonly data?: LineEdgeData }): ReactElement {
  const look = data?.isCritical ? 'var(--c-text)' : 'var(--c-line-strong)';
  return (
    <BaseEdge
      id={id}
      path={data?.path ?? ''}
      style={{ stroke: look, strokeWidth: data?.isCritical ? 2.5 : 1.5, opacity: data?.isDim ? 0.3 : 1 }}
    />
  );
}
