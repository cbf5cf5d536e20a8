import { conditionOfRun, toSentence } from '@capstan/core/run/run-status';
import type { ReactElement } from 'react';
import { isShortened } from '../../json/json-model.ts';
import { JsonTree } from '../../json/json-tree.tsx';
import { CopyButton } from '../../shared/copy-button.tsx';
import { EmptyState, Panel } from '../../shared/parts.tsx';
import type { RunViewProps } from './run-view-props.ts';

export function OutputTab({ run }: RunViewProps): ReactElement {
  const { output } = run;
  if (output === undefined) {
    return (
      <Panel>
        <EmptyState title={run.finished_at === null ? 'No output yet' : 'No output'}>
          A run has its output once it has succeeded. {toSentence(conditionOfRun(run))}.
        </EmptyState>
      </Panel>
    );
  }
  const text = JSON.stringify(output, null, 2);
  return (
    <Panel title="Output" actions={<CopyButton text={text} name="the output as JSON" />}>
      {isShortened(output) ? (
        <p className="mb-2 text-sm text-muted">
          Long lists and texts are cut here. Copy takes all {text.length.toLocaleString('en-US')} characters.
        </p>
      ) : null}
      <JsonTree value={output} name="output" />
    </Panel>
  );
}
