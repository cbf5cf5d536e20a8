import type { ReactElement } from 'react';
import { JsonTree } from '../../json/json-tree.tsx';
import { EmptyState, Panel } from '../../shared/parts.tsx';
import { describeRun } from './model.ts';
import type { RunViewProps } from './run-view-props.ts';

export function OutputTab({ run }: RunViewProps): ReactElement {
  if (run.output === undefined) {
    return (
      <Panel>
        <EmptyState title="No output yet">
          It is there once the run has succeeded. Now: {describeRun(run).reason}.
        </EmptyState>
      </Panel>
    );
  }
  return (
    <Panel title="Output">
      <JsonTree value={run.output} name="output" />
    </Panel>
  );
}
