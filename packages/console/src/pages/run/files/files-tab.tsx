import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { readProject } from '../../../api/project.ts';
import { stepQuery } from '../../../api/runs.ts';
import { mediaAddress, mediaKindOf } from '../../../json/json-model.ts';
import { Player } from '../../../media/player.tsx';
import { formatUsd } from '../../../shared/format.ts';
import { Icon } from '../../../shared/icon.tsx';
import { Button, EmptyState, linkClass, Panel } from '../../../shared/parts.tsx';
import { QueryView } from '../../../shared/query-view.tsx';
import type { RunViewProps } from '../run-view-props.ts';
import { describeFiles, mediaIn, type RunFile } from './files-model.ts';
import { useFiles } from './use-files.ts';

/** Cards in the beginning, and with each *more*. */
const shownAtOnce = 24;

/** The files of a run as a gallery, the results first, each with its step and price. */
export function FilesTab({ run, onSearch }: RunViewProps): ReactElement {
  const query = useFiles(run);
  const [most, setMost] = useState(shownAtOnce);
  return (
    <QueryView query={query}>
      {({ files, left }) =>
        files.length === 0 ? (
          <Panel>
            <EmptyState title={run.finished_at === null ? 'No files yet' : 'No files'}>
              Files that the job, the steps and the output name as media://… are shown here.
            </EmptyState>
          </Panel>
        ) : (
          <>
            <p className="mb-3 text-sm text-muted">
              {describeFiles(files)}
              {left === 0 ? '' : `; ${left} more steps were not read`}
            </p>
            <ul className="grid gap-4 sm:grid-cols-2 xl:grid-cols-3">
              {files.slice(0, most).map((file) => (
                <FileCard
                  key={file.reference}
                  file={file}
                  runId={run.run_id}
                  onStep={(step, item) => onSearch({ step, item, tab: undefined })}
                />
              ))}
            </ul>
            {files.length > most ? (
              <Button className="mt-4" onClick={() => setMost(most + shownAtOnce)}>
                Show {Math.min(shownAtOnce, files.length - most)} more
              </Button>
            ) : null}
          </>
        )
      }
    </QueryView>
  );
}

interface FileCardProps {
  readonly file: RunFile;
  readonly runId: string;
  readonly onStep: (step: string, item: number | undefined) => void;
}

function FileCard({ file, runId, onStep }: FileCardProps): ReactElement {
  const [isCompared, setCompared] = useState(false);
  const { reference, name, kind, madeBy, isResult, before } = file;
  const hasBefore = before.length > 0 || madeBy?.item !== undefined;
  return (
    <li
      className={`flex min-w-0 flex-col rounded-lg border border-line bg-surface ${isCompared ? 'sm:col-span-2' : ''}`}
    >
      <div className={isCompared ? 'grid gap-px bg-line sm:grid-cols-2' : ''}>
        {isCompared ? <Before file={file} runId={runId} /> : null}
        <figure className="bg-surface">
          {isCompared ? <figcaption className="px-3 pt-2 text-xs text-muted">After</figcaption> : null}
          <Shown reference={reference} kind={kind} />
        </figure>
      </div>
      <div className="flex flex-1 flex-col gap-1 border-t border-line px-3 py-2 text-sm">
        <p className="flex items-center justify-between gap-2">
          <span className="min-w-0 truncate font-medium" title={reference}>
            {name}
          </span>
          <a
            href={mediaAddress(reference, readProject(), true)}
            download
            aria-label={`Save ${reference}`}
            className="grid size-6 shrink-0 place-items-center rounded text-muted hover:bg-sunken hover:text-text"
          >
            <Icon name="download" size={14} />
          </a>
        </p>
        <p className="flex flex-wrap items-center gap-x-3 text-xs text-muted">
          {isResult ? <span className="rounded bg-done-soft px-1.5 text-done">result</span> : null}
          {madeBy === null ? (
            <span>{isResult ? 'named by the output' : 'of the job'}</span>
          ) : (
            <>
              <button type="button" className={linkClass} onClick={() => onStep(madeBy.step, madeBy.item)}>
                {madeBy.step}
                {madeBy.item === undefined ? '' : `, item ${madeBy.item}`}
              </button>
              <span className="figure">{formatUsd(madeBy.cost_usd)}</span>
            </>
          )}
          {hasBefore ? (
            <button
              type="button"
              aria-pressed={isCompared}
              className={linkClass}
              onClick={() => setCompared(!isCompared)}
            >
              {isCompared ? 'hide before' : 'before and after'}
            </button>
          ) : null}
        </p>
      </div>
    </li>
  );
}

function Shown({ reference, kind }: Pick<RunFile, 'reference' | 'kind'>): ReactElement {
  const isPlayed = kind === 'video' || kind === 'audio' || kind === 'image';
  return (
    <div className="grid min-h-44 place-items-center overflow-hidden rounded-t-lg bg-sunken">
      {isPlayed ? (
        <Player
          reference={reference}
          kind={kind}
          className={kind === 'audio' ? 'w-full px-3' : 'h-44 w-full object-contain'}
        />
      ) : (
        <span className="flex flex-col items-center gap-1 text-sm text-muted">
          <Icon name="scroll-text" size={28} />
          {kind === 'text' ? 'text' : 'file'}
        </span>
      )}
    </div>
  );
}

/** The files from which the step made this one; those of an item are read when they are asked for. */
function Before({ file, runId }: Pick<FileCardProps, 'file' | 'runId'>): ReactElement {
  const { before, kind, madeBy, reference } = file;
  const isRead = before.length === 0 && madeBy !== null;
  const { data } = useQuery({ ...stepQuery(runId, madeBy?.step ?? '', madeBy?.item), enabled: isRead });
  const given = mediaIn(data?.revisions?.at(-1)?.input ?? data?.input).filter((one) => one !== reference);
  const alike = given.filter((one) => mediaKindOf(one) === kind);
  const shown = before.length > 0 ? before : alike.length > 0 ? alike : given;
  return (
    <figure className="min-w-0 bg-surface">
      <figcaption className="truncate px-3 pt-2 text-xs text-muted" title={shown[0]}>
        Before{shown.length > 1 ? `, 1 of ${shown.length} files` : ''}
      </figcaption>
      {shown[0] === undefined ? (
        <p className="p-3 text-sm text-muted">
          {isRead && data === undefined ? 'Reading …' : 'The input names no file.'}
        </p>
      ) : (
        <Shown reference={shown[0]} kind={mediaKindOf(shown[0])} />
      )}
    </figure>
  );
}
