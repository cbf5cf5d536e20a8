import { useQuery } from '@tanstack/react-query';
import { type ReactElement, useState } from 'react';
import { readProject } from '../api/project.ts';
import { mediaAddress, type mediaKindOf } from '../json/json-model.ts';
import { explainMissing } from './missing.ts';

export interface PlayerProps {
  readonly reference: string;
  readonly kind: ReturnType<typeof mediaKindOf>;
  /** After a click on *play*. */
  readonly starts?: boolean;
  readonly className?: string;
}

/** A picture, a sound or a video; a sentence for a file that cannot be shown. */
export function Player({
  reference,
  kind,
  starts = false,
  className = '',
}: PlayerProps): ReactElement | null {
  const [hasFailed, setFailed] = useState(false);
  const fail = (): void => setFailed(true);
  const address = mediaAddress(reference, readProject());
  if (hasFailed) return <Missing address={address} />;
  const shared = { src: address, onError: fail, className } as const;
  if (kind === 'video') {
    return <video {...shared} controls autoPlay={starts} preload="metadata" aria-label={reference} />;
  }
  if (kind === 'audio') {
    return <audio {...shared} controls autoPlay={starts} preload="metadata" aria-label={reference} />;
  }
  return kind === 'image' ? <img {...shared} alt={reference} loading="lazy" /> : null;
}

/** Asks the server why, since a browser's player gives no reason. */
function Missing({ address }: { readonly address: string }): ReactElement {
  const { data } = useQuery({
    queryKey: ['media', address],
    queryFn: () =>
      fetch(address, { method: 'HEAD' }).then(
        ({ status }) => ({ status }),
        () => ({ status: null }),
      ),
    retry: false,
  });
  return (
    <p role="alert" className="p-3 text-sm text-muted">
      {data === undefined ? 'The file cannot be shown.' : explainMissing(data.status)}
    </p>
  );
}
