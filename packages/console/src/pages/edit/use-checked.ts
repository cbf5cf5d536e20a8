import type { CapabilitySummary } from '@capstan/core/contracts/capability';
import type { DefinitionKeys } from '@capstan/core/definitions/findings';
import type { MockInstance } from '@capstan/core/mock-run/mocks';
import { useQuery } from '@tanstack/react-query';
import { useEffect, useMemo, useRef, useState } from 'react';
import { specsQuery } from '../../api/capabilities.ts';
import { validationQuery } from '../../api/pipelines.ts';
import { type EditorFacts, emptyOutline, readOutline } from '../../editor/facts.ts';
import { useSettled } from '../../shared/use-settled.ts';
import type { CheckedText, LiveSpecs } from '../../worker/messages.ts';
import type { DefinitionWorker } from '../../worker/use-worker.ts';
import { type Findings, joinFindings } from './findings-model.ts';

const mostInstances = 10;

/** A run with mocks does not depend on the states of instances, only on their offers. */
function toMockInstances(instances: CapabilitySummary['instances']): MockInstance[] {
  const offers = instances.map(({ version, tags, cost_model, max_concurrency }) =>
    JSON.stringify({ version, tags, cost_model, max_concurrency }),
  );
  return [...new Set(offers)].slice(0, mostInstances).map((offer): MockInstance => JSON.parse(offer));
}

/** The latest spec of every live capability. */
export function useLiveSpecs(): LiveSpecs {
  const items = useQuery(specsQuery()).data?.items ?? [];
  const specs = items.flatMap(({ name, spec, instances }) => {
    if (spec === undefined) return [];
    const { description, input, output } = spec;
    return [[name, { description, input, output, instances: toMockInstances(instances) }] as const];
  });
  return Object.fromEntries(specs);
}

const nothing: CheckedText = { text: '', isReadable: false, findings: [], definition: null, graph: null };
const pauseMs = 120;

/** The worker's findings in the text; the last valid graph stays while the text is broken. */
export function useChecked(worker: DefinitionWorker, text: string, specs: LiveSpecs): CheckedText {
  const [checked, setChecked] = useState(nothing);
  const known = JSON.stringify(Object.keys(specs));
  // biome-ignore lint/correctness/useExhaustiveDependencies: the worker is one, specs differ by their names
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

const restMs = 300;

/** Asks the server too, once the text is stable and readable; a further change cancels the request. */
export function useFindings(checked: CheckedText): Findings {
  const asked = useSettled(checked.isReadable ? checked.text : null, restMs);
  const isAsked = asked !== null && asked === checked.text;
  const { data, isError } = useQuery({ ...validationQuery(asked ?? ''), enabled: isAsked });
  const found = asked === null || data === undefined ? null : { text: asked, findings: data.findings };
  return joinFindings(checked, checked.isReadable, { found, hasFailed: isAsked && isError });
}

/** The facts for completion and hover, from the last readable text. */
export function useEditorFacts(worker: DefinitionWorker, text: string, specs: LiveSpecs): EditorFacts {
  const [keys, setKeys] = useState<DefinitionKeys>({ pipeline: {}, step: {} });
  const outline = useRef(emptyOutline);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the worker is one
  useEffect(() => void worker.keys().then(setKeys), []);
  outline.current = useMemo(() => readOutline(text, outline.current), [text]);
  return { ...outline.current, specs, keys };
}
