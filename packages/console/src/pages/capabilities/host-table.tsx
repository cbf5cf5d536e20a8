import type { Host } from '@capstan/core/contracts/host-list';
import { useQuery } from '@tanstack/react-query';
import type { ReactElement } from 'react';
import { changeHostDrain, hostsQuery } from '../../api/hosts.ts';
import { DrainButtons } from '../../fleet/drain-controls.tsx';
import { usePolling } from '../../live/live.tsx';
import { Panel, tableClass } from '../../shared/parts.tsx';
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
  return (
    <DrainButtons
      what="host"
      isDrained={drain !== undefined}
      change={(wanted) => changeHostDrain(name, wanted)}
    >
      The {instances.length} instances on <code className="break-words">{name}</code> get no new calls, and
      neither do those that register on it later. Open calls hold {held} slots and continue. A restart does
      not end the drain; Undrain does.
    </DrainButtons>
  );
}
