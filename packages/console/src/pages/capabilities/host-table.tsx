import type { Host } from '@capstan/core/contracts/host-list';
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import type { DrainChange } from '../../api/capabilities.ts';
import { changeHostDrain, hostsQuery } from '../../api/hosts.ts';
import { DrainDialog } from '../../fleet/drain-controls.tsx';
import { usePolling } from '../../live/live.tsx';
import { Button, Panel, tableClass } from '../../shared/parts.tsx';
import { ProblemView } from '../../shared/problem-view.tsx';
import { describeHostTrouble } from './model.ts';

/** The hosts whose slots instances share; nothing without any. */
export function HostPanel(): ReactElement | null {
  const hosts = useQuery({ ...hostsQuery(), refetchInterval: usePolling() || 15_000 }).data?.items ?? [];
  if (hosts.length === 0) return null;
  return (
    <Panel title="Hosts" className="mt-4" isTight>
      <section className="scrolls @container" tabIndex={0} aria-label="Hosts">
        <table className={tableClass}>
          <thead>
            <tr>
              <th>Host</th>
              <th className="text-right!">Slots held</th>
              <th className="text-right! @max-xl:hidden">Memory</th>
              <th className="text-right! @max-xl:hidden">Instances</th>
              <th className="@max-xl:hidden">Capabilities</th>
              <th aria-label="Drain" />
            </tr>
          </thead>
          <tbody>
            {hosts.map((host) => (
              <HostLine key={host.name} host={host} />
            ))}
          </tbody>
        </table>
      </section>
    </Panel>
  );
}

function HostLine({ host }: { readonly host: Host }): ReactElement {
  const { name, held, slots, memory_gb, instances, capabilities } = host;
  const trouble = describeHostTrouble(host);
  return (
    <tr className="align-top hover:bg-sunken/60">
      <td className="max-w-72">
        <span className="font-medium">{name}</span>
        {trouble.map((line) => (
          <div key={line} className="break-words text-xs text-waiting">
            {line}
          </div>
        ))}
      </td>
      <td className="figure whitespace-nowrap text-right!">
        {held} of {slots}
      </td>
      <td className="figure whitespace-nowrap text-right! @max-xl:hidden">
        {memory_gb === undefined ? '–' : `${memory_gb} GB`}
      </td>
      <td className="figure text-right! @max-xl:hidden">{instances.length}</td>
      <td className="max-w-72 break-words text-xs @max-xl:hidden">{capabilities.join(', ')}</td>
      <td className="whitespace-nowrap text-right!">
        <HostDrain host={host} />
      </td>
    </tr>
  );
}

function HostDrain({ host: { name, drain, held, instances } }: { readonly host: Host }): ReactElement {
  const queries = useQueryClient();
  const [isOpen, setOpen] = useState(false);
  const change = useMutation({
    mutationFn: (wanted: DrainChange) => changeHostDrain(name, wanted),
    onSuccess: () => {
      setOpen(false);
      const keys = [['hosts'], ['capability'], ['capabilities']];
      return Promise.all(keys.map((queryKey) => queries.invalidateQueries({ queryKey })));
    },
  });
  if (drain !== undefined) {
    return (
      <>
        <Button disabled={change.isPending} onClick={() => change.mutate({ act: 'undrain' })}>
          Undrain
        </Button>
        {change.error === null ? null : <ProblemView error={change.error} />}
      </>
    );
  }
  return (
    <>
      <Button onClick={() => setOpen(true)}>Drain …</Button>
      {isOpen ? (
        <DrainDialog
          what="host"
          isPending={change.isPending}
          error={change.error}
          onDrain={(reason) => change.mutate({ act: 'drain', reason })}
          onClose={() => setOpen(false)}
        >
          The {instances.length} instances on <code className="break-words">{name}</code> get no new calls,
          and neither do those that register on it later. Open calls hold {held} slots and continue. A restart
          does not end the drain; Undrain does.
        </DrainDialog>
      ) : null}
    </>
  );
}
