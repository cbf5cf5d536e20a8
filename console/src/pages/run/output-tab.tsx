import type { ReactElement } from 'react';
import { conditionOfRun, toSentence } from '../../../../src/core/run/condition.ts';
import { JsonTree } from '../../json/json-tree.tsx';
import { EmptyState, Panel } from '../../shared/parts.tsx';
import type { RunViewProps } from './run-view-props.ts';

export function OutputTab({ run }: RunViewProps): ReactElement {
  if (run.output === undefined) {
    return (
      <Panel>
        <EmptyState title="No output yet">
          A run has its output once it has succeeded. {toSentence(conditionOfRun(run))}.
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
