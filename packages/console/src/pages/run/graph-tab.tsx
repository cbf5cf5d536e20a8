import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useMemo, useState } from 'react';
import { runGraphQuery } from '../../api/runs.ts';
import { GraphView } from '../../graph/graph-view.tsx';
import { lookOfNode, type NodeFacts, nodeOfStep } from '../../graph/node-model.ts';
import { QueryView } from '../../shared/query-view.tsx';
import { type Tone, toneFill } from '../../shared/state.ts';
import { useIsNarrow } from '../../shared/use-is-narrow.ts';
import { useNow } from '../../shared/use-now.ts';
import { findCritical } from './critical.ts';
import type { RunViewProps } from './run-view-props.ts';
import { StepGrid } from './step-grid.tsx';

/** The graph, and the same steps as a grid of rows. */
export function GraphTab({ run, search, onSearch }: RunViewProps): ReactElement {
  const graph = useQuery(runGraphQuery(run.run_id));
  const now = useNow();
  const isNarrow = useIsNarrow();
  const [only, setOnly] = useState<string | null>(null);
  const [isList, setList] = useState(isNarrow);
  const nodes = run.steps.map((step) => nodeOfStep(step, now, run));
  const isDim = useMemo(() => (facts: NodeFacts) => only !== null && wordOf(facts) !== only, [only]);
  return (
    <QueryView query={graph}>
      {({ edges }) => (
        <>
          <div className="mb-2 flex flex-wrap items-center justify-between gap-2">
            <StateFilter nodes={nodes} only={only} onOnly={setOnly} />
            <button
              type="button"
              aria-pressed={isList}
              onClick={() => setList(!isList)}
              className="rounded-md px-2 py-1 text-sm text-muted hover:bg-sunken aria-pressed:bg-accent-soft aria-pressed:text-accent"
            >
              List view
            </button>
          </div>
          {isList ? (
            <StepGrid
              steps={
                only === null ? run.steps : run.steps.filter((_, index) => wordOf(nodes[index]) === only)
              }
              edges={edges}
              search={search}
              onSearch={onSearch}
              run={run}
            />
          ) : (
            <div className="overflow-hidden rounded-lg border border-line bg-sunken/50">
              <GraphView
                nodes={nodes}
                edges={edges}
                selected={search.step ?? null}
                critical={findCritical(run.steps, edges, now)}
                isDim={isDim}
                mostHeight="max(24rem, 100dvh - 21rem)"
                onSelect={(step) => onSearch({ step: step ?? undefined, item: undefined })}
              />
            </div>
          )}
        </>
      )}
    </QueryView>
  );
}

function wordOf(facts: NodeFacts | undefined): string {
  return facts === undefined ? '' : (lookOfNode(facts)?.word ?? '');
}

interface StateFilterProps {
  readonly nodes: readonly NodeFacts[];
  /** The condition of the steps that are not dimmed. */
  readonly only: string | null;
  readonly onOnly: (word: string | null) => void;
}

/** Counts the steps by condition; choosing one dims the rest. */
function StateFilter({ nodes, only, onOnly }: StateFilterProps): ReactElement {
  const counts = new Map<string, { readonly tone: Tone; count: number }>();
  for (const facts of nodes) {
    const look = lookOfNode(facts);
    if (look === null) continue;
    const known = counts.get(look.word) ?? { tone: look.tone, count: 0 };
    known.count += 1;
    counts.set(look.word, known);
  }
  return (
    <div className="flex flex-wrap gap-1.5" role="group" aria-label="Steps by state">
      {[...counts].map(([word, { tone, count }]) => (
        <button
          key={word}
          type="button"
          aria-pressed={only === word}
          onClick={() => onOnly(only === word ? null : word)}
          className="inline-flex items-center gap-1.5 rounded-full border border-line bg-surface px-2.5 py-0.5 text-xs hover:border-line-strong aria-pressed:border-accent aria-pressed:bg-accent-soft"
        >
          <span className={`size-2 rounded-full ${toneFill[tone]}`} />
          <span className="figure font-medium">{count}</span> {word}
        </button>
      ))}
    </div>
  );
}
