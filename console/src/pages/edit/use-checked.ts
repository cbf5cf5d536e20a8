import { useQuery } from '@tanstack/react-query';
import { useEffect, useState } from 'react';
import type { CapabilityDetail } from '../../../../src/contracts/capability.ts';
import { capabilitiesQuery } from '../../api/capabilities.ts';
import { askPlainly } from '../../api/client.ts';
import type { CheckedText, LiveSpecs } from '../../worker/messages.ts';
import type { DefinitionWorker } from '../../worker/use-worker.ts';

const mostSpecs = 60;

/** The latest spec of every live capability. */
export function useLiveSpecs(): LiveSpecs {
  const names = useQuery(capabilitiesQuery()).data?.items.map(({ name }) => name) ?? [];
  const query = useQuery({
    queryKey: ['specs', names],
    enabled: names.length > 0,
    queryFn: () =>
      Promise.all(
        names.slice(0, mostSpecs).map((name) => askPlainly<CapabilityDetail>(`/v1/capabilities/${name}`)),
      ),
    staleTime: 60_000,
  });
  const specs = (query.data ?? []).flatMap(({ name, specs: all }) => {
    const spec = all.at(-1)?.spec;
    return spec === undefined ? [] : [[name, { input: spec.input, output: spec.output }] as const];
  });
  return Object.fromEntries(specs);
}

const nothing: CheckedText = { findings: [], definition: null, graph: null };
const pauseMs = 120;

/** What the worker finds in the text; the last sound graph stays while the text is broken. */
export function useChecked(worker: DefinitionWorker, text: string, specs: LiveSpecs): CheckedText {
  const [checked, setChecked] = useState(nothing);
  const known = JSON.stringify(Object.keys(specs));
  // biome-ignore lint/correctness/useExhaustiveDependencies: the worker is one, specs are told apart by their names
  useEffect(() => {
    let isOld = false;
    const timer = setTimeout(() => {
      void worker.check(text, specs).then((answer) => {
        if (!isOld) setChecked((former) => ({ ...answer, graph: answer.graph ?? former.graph }));
      });
    }, pauseMs);
    return () => {
      isOld = true;
      clearTimeout(timer);
    };
  }, [text, known]);
  return checked;
}
