import { type ReactElement, useState } from 'react';
import { readProject } from '../api/project.ts';
import { mediaAddress, mediaKindOf } from '../json/json-model.ts';
import { Icon } from '../shared/icon.tsx';
import { Player } from './player.tsx';

/** A file by its reference: played or displayed where a browser can do that safely, and always downloadable. */
export function MediaView({ reference }: { readonly reference: string }): ReactElement {
  const [isShown, setShown] = useState(false);
  const kind = mediaKindOf(reference);
  const canShow = kind === 'video' || kind === 'audio' || kind === 'image';
  return (
    <span className="inline-flex max-w-full flex-col align-top">
      <span className="inline-flex max-w-full flex-wrap items-center gap-2">
        <span className="break-all text-accent">{reference}</span>
        {canShow ? (
          <button
            type="button"
            aria-expanded={isShown}
            onClick={() => setShown(!isShown)}
            className="inline-flex items-center gap-1 rounded border border-line px-1.5 font-sans hover:bg-sunken"
          >
            <Icon name={isShown ? 'x' : 'play'} size={12} />{' '}
            {isShown ? 'hide' : kind === 'image' ? 'show' : 'play'}
          </button>
        ) : null}
        <a
          href={mediaAddress(reference, readProject(), true)}
          download
          aria-label={`Save ${reference}`}
          className="grid size-5 place-items-center rounded text-muted hover:bg-sunken hover:text-text"
        >
          <Icon name="download" size={13} />
        </a>
      </span>
      {isShown ? (
        <Player
          reference={reference}
          kind={kind}
          starts
          className="mt-1.5 max-h-80 max-w-full rounded-md border border-line"
        />
      ) : null}
    </span>
  );
}
