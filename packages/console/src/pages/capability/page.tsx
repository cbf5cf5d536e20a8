import type { CapabilityDetail, Instance } from '@capstan/core/contracts/capability';
import { useQuery } from '@tanstack/react-query';
import { Link, useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { type ReactElement, Suspense } from 'react';
import { capabilityQuery } from '../../api/capabilities.ts';
import { callsHealthQuery } from '../../api/health.ts';
import { isStatus } from '../../api/problem-error.ts';
import { readProject } from '../../api/project.ts';
import { DrainControls } from '../../fleet/drain-controls.tsx';
import { InstanceTile } from '../../fleet/instance-tile.tsx';
import { SharingControls } from '../../fleet/sharing-controls.tsx';
import { JsonTree } from '../../json/json-tree.tsx';
import { usePolling } from '../../live/live.tsx';
import type { capabilityTabs } from '../../searches.ts';
import { latePart } from '../../shared/late-part.tsx';
import { EmptyState, linkClass, PageHead, Panel, Skeleton } from '../../shared/parts.tsx';
import { QueryView } from '../../shared/query-view.tsx';
import { type Tab, Tabs } from '../../shared/tabs.tsx';
import { useTitle } from '../../shared/title.ts';

const TryTab = latePart(() => import('./try-tab.tsx'), 'TryTab');
const WhyTab = latePart(() => import('./why-tab.tsx'), 'WhyTab');
const DecisionsTab = latePart(() => import('./decisions-tab.tsx'), 'DecisionsTab');

type CapabilityTab = (typeof capabilityTabs)[number];

const tabs: readonly Tab<CapabilityTab>[] = [
  { name: 'fleet', label: 'Fleet' },
  { name: 'why', label: 'Routing preview' },
  { name: 'try', label: 'Try it' },
  { name: 'decisions', label: 'Decisions' },
  { name: 'spec', label: 'Spec' },
];

export function CapabilityPage(): ReactElement {
  const { name } = useParams({ from: '/capabilities/$name' });
  const query = useQuery({ ...capabilityQuery(name), refetchInterval: usePolling() || 15_000 });
  // Also when it has been there: an instance that is no longer shared with the project does not exist for it.
  if (isStatus(query.error, 404)) return <NeverRegistered name={name} />;
  return <QueryView query={query}>{(capability) => <CapabilityOpen capability={capability} />}</QueryView>;
}

/** The page of a name that a pipeline calls before an instance of it exists. */
function NeverRegistered({ name }: { readonly name: string }): ReactElement {
  useTitle(`${name} · Capabilities`);
  return (
    <EmptyState
      title={`No instance has registered ${name}`}
      command="node bin/capstan.mjs capability start FOLDER"
    >
      <p>
        A capability is a program that answers <code>/spec</code>, <code>/health</code> and <code>/exec</code>
        . Write one whose <code>/spec</code> has the name <code className="break-words">{name}</code>, then
        start and register it with one command. Steps that wait for it continue automatically.
      </p>
      <p className="mt-3">
        The guide is in <code>docs/write-a-capability.md</code>.{' '}
        <Link to="/capabilities" className={linkClass}>
          All capabilities
        </Link>
      </p>
    </EmptyState>
  );
}

function CapabilityOpen({ capability }: { readonly capability: CapabilityDetail }): ReactElement {
  const { name, specs } = capability;
  const { tab = 'fleet', instance, from } = useSearch({ from: '/capabilities/$name' });
  const navigate = useNavigate({ from: '/capabilities/$name' });
  const spec = specs.at(-1)?.spec;
  return (
    <>
      <p className="text-xs text-muted">
        <Link to="/capabilities" className="hover:underline">
          Capabilities
        </Link>
      </p>
      <PageHead title={name} about={spec?.description} />
      <div className="mb-4 border-b border-line">
        <Tabs
          label="About the capability"
          tabs={tabs}
          chosen={tab}
          onChoose={(chosen) => void navigate({ search: { instance, tab: chosen }, replace: true })}
        />
      </div>
      <Suspense fallback={<Skeleton />}>
        {tab === 'fleet' ? <Fleet capability={capability} instance={instance} /> : null}
        {tab === 'why' ? <WhyTab name={name} spec={spec} /> : null}
        {tab === 'try' ? <TryTab name={name} spec={spec} from={from} /> : null}
        {tab === 'decisions' ? <DecisionsTab name={name} /> : null}
        {tab === 'spec' ? <Specs capability={capability} /> : null}
      </Suspense>
    </>
  );
}

function Fleet({
  capability: { instances },
  instance,
}: {
  readonly capability: CapabilityDetail;
  readonly instance: string | undefined;
}): ReactElement {
  const known = useQuery(callsHealthQuery()).data?.items ?? [];
  if (instances.length === 0) {
    return (
      <EmptyState title="No instance is registered">
        Calls wait for one as long as their step says, or fail.
      </EmptyState>
    );
  }
  return (
    <>
      <div className="grid grid-cols-[repeat(auto-fill,minmax(17rem,1fr))] gap-3">
        {instances.map((one) => (
          <div
            key={one.endpoint}
            className={`rounded-lg border border-line bg-surface ${one.endpoint === instance ? 'ring-2 ring-accent' : ''}`}
          >
            <InstanceTile
              instance={one}
              health={known.find(({ name, endpoint }) => name === one.name && endpoint === one.endpoint)}
            />
            <div className="flex flex-wrap gap-2 px-2 py-2 empty:hidden">
              {isForeign(one) ? null : <OwnControls instance={one} />}
            </div>
          </div>
        ))}
      </div>
      <p className="mt-2 text-xs text-muted">
        The line at the foot of an instance is the time until its heartbeat is late.
      </p>
    </>
  );
}

/** Another project shares it; its owner alone changes it. */
function isForeign({ owner_project }: Instance): boolean {
  return owner_project !== (readProject() ?? owner_project);
}

function OwnControls({ instance }: { readonly instance: Instance }): ReactElement {
  return (
    <>
      <DrainControls instance={instance} />
      <SharingControls instance={instance} />
    </>
  );
}

function Specs({ capability: { specs } }: { readonly capability: CapabilityDetail }): ReactElement {
  return (
    <div className="grid gap-4 lg:grid-cols-2">
      {specs.map(({ digest, spec, not_enforced = [] }) => (
        <Panel key={digest} title={`Version ${spec.version}`}>
          {not_enforced.map(({ schema, pointer, reason }) => (
            <p key={`${schema}${pointer}`} className="mb-2 break-words text-muted">
              The router does not enforce <code>{pointer}</code> of the {schema} schema: {reason}
            </p>
          ))}
          <h3 className="mb-1 text-muted">Input</h3>
          <JsonTree value={spec.input} name="input schema" />
          <h3 className="mb-1 mt-4 text-muted">Output</h3>
          <JsonTree value={spec.output} name="output schema" />
        </Panel>
      ))}
    </div>
  );
}
