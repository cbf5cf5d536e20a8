import type { PipelineDefinition } from '@capstan/core/contracts/pipeline';
import { type ReactElement, Suspense, useEffect, useState } from 'react';
import { CodeEditor } from '../../editor/code-editor.tsx';
import { GraphView } from '../../graph/graph-view.tsx';
import { latePart } from '../../shared/late-part.tsx';
import { Button, EmptyState, PageHead } from '../../shared/parts.tsx';
import { type Tab, Tabs } from '../../shared/tabs.tsx';
import type { CheckedText } from '../../worker/messages.ts';
import { useWorker } from '../../worker/use-worker.ts';
import { type EditDraft, keepDraft } from './draft.ts';
import { mocksOf } from './example.ts';
import { FindingList } from './finding-list.tsx';
import { countErrors } from './findings-model.ts';
import { PlanTab } from './plan-tab.tsx';
import { TryTab } from './try-tab.tsx';
import { useChecked, useEditorFacts, useFindings, useLiveSpecs } from './use-checked.ts';

const StoreDialog = latePart(() => import('./store-dialog.tsx'), 'StoreDialog');

type DeskView = 'graph' | 'plan' | 'try';

const tabs: readonly Tab<DeskView>[] = [
  { name: 'graph', label: 'Graph', icon: 'workflow' },
  { name: 'plan', label: 'Plan', icon: 'route' },
  { name: 'try', label: 'Try with mocks', icon: 'play' },
];

export interface EditorDeskProps {
  readonly name: string;
  /** The stored text; empty for a new one. */
  readonly stored: string;
  readonly begin: EditDraft;
}

/** The text on the left; its graph, plan and trial on the right. */
export function EditorDesk({ name, stored, begin }: EditorDeskProps): ReactElement {
  const [draft, setDraft] = useState(begin);
  const [view, setView] = useState<DeskView>('graph');
  const [isStoring, setStoring] = useState(false);
  const worker = useWorker();
  const specs = useLiveSpecs();
  const checked = useChecked(worker, draft.text, specs);
  const facts = useEditorFacts(worker, draft.text, specs);
  const { findings, verdict } = useFindings(checked);
  const mocks = useMocks(draft.mocks, checked.definition);
  useEffect(() => {
    if (draft !== begin) keepDraft(name, draft);
  }, [name, draft, begin]);
  return (
    <>
      <PageHead
        title={name === 'new' ? 'New pipeline' : `Edit ${name}`}
        about="The draft stays in this browser until you save it as a version."
        actions={
          <Button
            look="primary"
            disabled={countErrors(findings) > 0 || checked.definition === null}
            onClick={() => setStoring(true)}
          >
            Save version
          </Button>
        }
      />
      <div className="grid items-stretch gap-4 xl:grid-cols-2">
        <section
          aria-label="Definition"
          className="flex h-[max(26rem,calc(100dvh-12rem))] flex-col overflow-hidden rounded-lg border border-line bg-surface"
        >
          <div className="min-h-0 flex-1">
            <CodeEditor
              label="Definition, YAML"
              text={draft.text}
              findings={findings}
              facts={facts}
              onChange={(text) => setDraft((known) => ({ ...known, text }))}
            />
          </div>
          <FindingList findings={findings} verdict={verdict} />
        </section>
        <section className="flex min-w-0 flex-col">
          <div className="mb-3 border-b border-line">
            <Tabs label="What it does" tabs={tabs} chosen={view} onChoose={setView} />
          </div>
          {view === 'graph' ? <Drawn checked={checked} /> : null}
          {view === 'plan' ? <PlanTab definition={checked.definition} /> : null}
          {view === 'try' ? (
            <TryTab
              worker={worker}
              text={draft.text}
              mocks={mocks}
              specs={specs}
              checked={checked}
              onMocks={(mocks) => setDraft((known) => ({ ...known, mocks }))}
            />
          ) : null}
        </section>
      </div>
      <Suspense>
        {isStoring ? (
          <StoreDialog name={name} stored={stored} text={draft.text} onClose={() => setStoring(false)} />
        ) : null}
      </Suspense>
    </>
  );
}

/** While the text has an error, those of the last text without one. */
function useMocks(own: string | null, definition: PipelineDefinition | null): string {
  const [last, setLast] = useState(definition);
  if (definition !== null && definition !== last) setLast(definition);
  const known = definition ?? last;
  return own ?? (known === null ? '' : mocksOf(known));
}

/** Grey while the text has an error: the graph is of an earlier text. */
function Drawn({ checked: { graph, definition } }: { readonly checked: CheckedText }): ReactElement {
  if (graph === null)
    return <EmptyState title="No graph yet">The graph appears here when the text has no error.</EmptyState>;
  const isOld = definition === null;
  return (
    <>
      <p aria-live="polite" className="text-sm text-waiting">
        {isOld ? 'The graph shows the last text without an error.' : ''}
      </p>
      <div
        className={`h-[max(20rem,calc(100dvh-15.5rem))] overflow-hidden rounded-lg border border-line bg-sunken/50 ${isOld ? 'opacity-50 grayscale' : ''}`}
      >
        <GraphView key={graph.nodes.length} nodes={graph.nodes} edges={graph.edges} />
      </div>
    </>
  );
}
