import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import { type ReactElement, useEffect, useState } from 'react';
import { CodeEditor } from '../../editor/code-editor.tsx';
import { GraphView } from '../../graph/graph-view.tsx';
import { JsonTree } from '../../json/json-tree.tsx';
import { Icon } from '../../shared/icon.tsx';
import { Button, EmptyState } from '../../shared/parts.tsx';
import type { CheckedText, LiveSpecs, Tried } from '../../worker/messages.ts';
import type { DefinitionWorker } from '../../worker/use-worker.ts';
import { MocksBar } from './mocks-bar.tsx';
import { describeResult, faults, withFault, withResult } from './try-model.ts';
import { useSubPipelines } from './use-sub-pipelines.ts';

export interface TryTabProps {
  readonly worker: DefinitionWorker;
  readonly text: string;
  readonly mocks: string;
  readonly specs: LiveSpecs;
  readonly checked: CheckedText;
  /** Null: those of the definition. */
  readonly onMocks: (mocks: string | null) => void;
}

const pauseMs = 250;

function useTried(
  { worker, text, mocks, specs }: TryTabProps,
  pipelines: readonly PipelineDefinition[],
): Tried | null {
  const [tried, setTried] = useState<Tried | null>(null);
  const known = JSON.stringify(Object.keys(specs));
  // biome-ignore lint/correctness/useExhaustiveDependencies: the worker is one, specs differ by their names
  useEffect(() => {
    let isOld = false;
    const timer = setTimeout(() => {
      void worker.try({ text, mocks, job: {}, specs, pipelines }).then((answer) => {
        if (!isOld) setTried(answer);
      });
    }, pauseMs);
    return () => {
      isOld = true;
      clearTimeout(timer);
    };
  }, [text, mocks, known, pipelines]);
  return tried;
}

/** The engine in the browser: a run appears at once, and again with every change. A chosen step can be made to fail. */
export function TryTab(props: TryTabProps): ReactElement {
  const { checked, mocks, onMocks } = props;
  const pipelines = useSubPipelines(checked.definition);
  const tried = useTried(props, pipelines);
  const [chosen, setChosen] = useState<string | null>(null);
  const graph = checked.graph;
  const capability = checked.definition?.steps.find(({ id }) => id === chosen)?.capability;
  const shown = graph === null || tried?.result == null ? graph : withResult(graph, tried.result);
  if (shown === null)
    return <EmptyState title="No run yet">The run appears here when the text has no error.</EmptyState>;
  return (
    <div className="flex flex-col gap-3">
      <p aria-live="polite" className="flex items-center gap-2 text-sm font-medium">
        <Icon
          name={tried?.result?.outcome === 'succeeded' ? 'circle-check' : 'circle-dot'}
          className={tried?.result?.outcome === 'succeeded' ? 'text-done' : 'text-waiting'}
        />
        {tried === null
          ? 'Running …'
          : tried.result === null
            ? 'It cannot run yet:'
            : describeResult(tried.result)}
      </p>
      {tried?.problems.map((problem) => (
        <p key={problem} className="text-sm text-failed">
          {problem}
        </p>
      ))}
      {tried?.differences == null ? null : <Expected differences={tried.differences} />}
      <div className="h-72 overflow-hidden rounded-lg border border-line bg-sunken/50">
        <GraphView nodes={shown.nodes} edges={shown.edges} selected={chosen} onSelect={setChosen} />
      </div>
      {chosen === null || capability === undefined ? (
        <p className="text-xs text-muted">Select a step that calls a capability to simulate a failure.</p>
      ) : (
        <div className="flex flex-wrap items-center gap-2 text-sm">
          Let <strong>{chosen}</strong> be
          {faults.map((fault) => (
            <Button key={fault} onClick={() => onMocks(withFault(mocks, capability, fault))}>
              {fault}
            </Button>
          ))}
        </div>
      )}
      <MocksBar
        mocks={mocks}
        specs={props.specs}
        pipelines={pipelines}
        checked={checked}
        tried={tried}
        onMocks={onMocks}
      />
      <div className="h-64 overflow-hidden rounded-lg border border-line">
        <CodeEditor label="Mocks, YAML" text={mocks} onChange={onMocks} />
      </div>
      {tried?.result?.output == null ? null : <JsonTree value={tried.result.output} name="output" />}
    </div>
  );
}

function Expected({
  differences,
}: {
  readonly differences: NonNullable<Tried['differences']>;
}): ReactElement {
  if (differences.length === 0) return <p className="text-sm text-done">The result matches the mocks.</p>;
  return (
    <ul aria-label="Differences" className="text-sm">
      {differences.map(({ at, expected, actual }) => (
        <li key={at}>
          <code className="font-mono text-xs">{at}</code> <span className="text-failed">is {actual}</span>,
          expected is {expected}
        </li>
      ))}
    </ul>
  );
}
