import type { Hook } from '@capstan/core/contracts/hook';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { type ReactElement, useState } from 'react';
import { hooksQuery } from '../api/hooks.ts';
import { Ago } from '../shared/ago.tsx';
import { Breakable } from '../shared/breakable.tsx';
import { CopyButton } from '../shared/copy-button.tsx';
import { Button, EmptyState, linkClass, Panel } from '../shared/parts.tsx';
import { QueryView } from '../shared/query-view.tsx';
import { HookControls } from './hook-controls.tsx';
import { HookForm } from './hook-form.tsx';
import { describeUnsigned, signatureWords } from './hook-model.ts';
import { ReceivedList } from './received-list.tsx';

/** Hooks with their addresses, and the deliveries of the chosen one. The secret of a new one is shown once. */
export function HookList(): ReactElement {
  const query = useQuery(hooksQuery());
  const [isNew, setNew] = useState(false);
  const [secret, setSecret] = useState<string | null>(null);
  const finish = (made: string | null): void => {
    setNew(false);
    setSecret(made);
  };
  return (
    <div className="flex flex-col gap-4">
      {secret === null ? null : <MadeSecret secret={secret} />}
      <Panel
        title="Hooks"
        isTight
        actions={
          <Button look="primary" icon="plus" onClick={() => setNew(true)}>
            New hook …
          </Button>
        }
      >
        <QueryView query={query}>
          {({ items }) =>
            items.length === 0 ? (
              <EmptyState
                title="No hooks yet"
                command="node bin/capstan.mjs hooks add NAME PIPELINE --signature github"
              >
                A hook has an address, to which a service outside sends signed requests. Each starts a run.
              </EmptyState>
            ) : (
              <Hooks hooks={items} />
            )
          }
        </QueryView>
      </Panel>
      {isNew ? <HookForm of={null} onDone={finish} onClose={() => setNew(false)} /> : null}
    </div>
  );
}

function MadeSecret({ secret }: { readonly secret: string }): ReactElement {
  return (
    <p role="status" className="flex flex-wrap items-center gap-2 rounded-md bg-done-soft px-3 py-2 text-sm">
      <code className="min-w-0 break-all font-mono">{secret}</code>
      <CopyButton text={secret} name="the secret" />
      <span className="text-muted">The sender signs with it. Copy it now; you will not see it again.</span>
    </p>
  );
}

/** Nothing, where no hook starts runs of the pipeline. */
export function PipelineHooks({ pipeline }: { readonly pipeline: string }): ReactElement | null {
  const { items = [] } = useQuery(hooksQuery()).data ?? {};
  const hooks = items.filter((hook) => hook.pipeline === pipeline);
  if (hooks.length === 0) return null;
  return (
    <Panel
      title="Hooks"
      isTight
      className="mt-4"
      actions={
        <Link to="/settings" search={{ tab: 'hooks' }} className={`${linkClass} text-sm`}>
          All
        </Link>
      }
    >
      <Hooks hooks={hooks} />
    </Panel>
  );
}

function Hooks({ hooks }: { readonly hooks: readonly Hook[] }): ReactElement {
  const [shown, setShown] = useState<string | null>(null);
  return (
    <ul aria-label="Hooks" className="divide-y divide-line text-sm">
      {hooks.map((hook) => (
        <li key={hook.hook_id} className="px-4 py-3">
          <HookHead
            hook={hook}
            isShown={shown === hook.name}
            onToggle={() => setShown(shown === hook.name ? null : hook.name)}
          />
          {shown === hook.name ? <ReceivedList name={hook.name} isEnabled={hook.enabled} /> : null}
        </li>
      ))}
    </ul>
  );
}

interface HookHeadProps {
  readonly hook: Hook;
  readonly isShown: boolean;
  readonly onToggle: () => void;
}

function HookHead({ hook, isShown, onToggle }: HookHeadProps): ReactElement {
  const { name, pipeline, version, alias, signature, url, refused, enabled } = hook;
  const unsigned = describeUnsigned(hook);
  return (
    <>
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <strong>
          <Breakable name={name} />
        </strong>
        <Link to="/pipelines/$name" params={{ name: pipeline }} className={linkClass}>
          {pipeline} {version ?? alias ?? 'latest'}
        </Link>
        <span className="text-muted">{signatureWords[signature]}</span>
        {enabled ? null : <span className="text-waiting">disabled: it refuses deliveries</span>}
        <div className="ml-auto flex flex-wrap gap-1.5 max-sm:my-1 max-sm:ml-0 max-sm:gap-1 max-sm:[&>button]:px-2">
          <Button aria-expanded={isShown} aria-label={`Deliveries to ${name}`} onClick={onToggle}>
            Deliveries
          </Button>
          <HookControls hook={hook} />
        </div>
      </div>
      <p className="flex items-center gap-1">
        <code className="min-w-0 font-mono text-xs break-all text-muted">{url}</code>
        <CopyButton text={url} name={`the address of ${name}`} />
      </p>
      {unsigned === null || refused === null ? null : (
        <p className="text-xs text-waiting">
          {unsigned} (<Ago at={refused.at} />)
        </p>
      )}
    </>
  );
}
