import type { DefinitionKeys } from '@capstan/core/definitions/findings';
import { useEffect, useRef } from 'react';
import type { CheckedText, LiveSpecs, Tried, WorkerAnswer, WorkerQuestion } from './messages.ts';
import type { TryRequest } from './try-text.ts';

export interface DefinitionWorker {
  /** The keys of a definition with their meaning. */
  keys(): Promise<DefinitionKeys>;
  check(text: string, specs: LiveSpecs): Promise<CheckedText>;
  try(request: TryRequest): Promise<Tried>;
}

type WorkerAsked = WorkerQuestion extends infer One
  ? One extends WorkerQuestion
    ? Omit<One, 'id'>
    : never
  : never;

function startWorker(): {
  readonly ask: (question: WorkerAsked) => Promise<WorkerAnswer>;
  readonly end: () => void;
} {
  const worker = new Worker(new URL('./worker.ts', import.meta.url), { type: 'module' });
  const waiting = new Map<number, (answer: WorkerAnswer) => void>();
  let last = 0;
  worker.onmessage = ({ data }: MessageEvent<WorkerAnswer>) => {
    waiting.get(data.id)?.(data);
    waiting.delete(data.id);
  };
  const ask = (question: WorkerAsked): Promise<WorkerAnswer> =>
    new Promise((resolve) => {
      last++;
      waiting.set(last, resolve);
      worker.postMessage({ ...question, id: last });
    });
  return { ask, end: () => worker.terminate() };
}

/** The page's worker, started with the first request, ended with the page. */
export function useWorker(): DefinitionWorker {
  const started = useRef<ReturnType<typeof startWorker> | null>(null);
  useEffect(
    () => () => {
      started.current?.end();
      started.current = null;
    },
    [],
  );
  const ask = (question: WorkerAsked): Promise<WorkerAnswer> => {
    started.current ??= startWorker();
    return started.current.ask(question);
  };
  return {
    keys: async () => ((await ask({ kind: 'keys' })) as WorkerAnswer & { keys: DefinitionKeys }).keys,
    check: async (text, specs) => (await ask({ kind: 'check', text, specs })) as WorkerAnswer & CheckedText,
    try: async (request) => (await ask({ kind: 'try', ...request })) as WorkerAnswer & Tried,
  };
}
