import { useMutation, useQuery } from '@tanstack/react-query';
import { type ReactElement, useEffect, useRef, useState } from 'react';
import { limitsQuery } from '../api/access.ts';
import { uploadMedia } from '../api/upload.ts';
import { isMedia } from '../json/json-model.ts';
import { MediaView } from '../media/media-view.tsx';
import { FileButton } from '../shared/file-button.tsx';
import { formatBytes } from '../shared/format.ts';
import { Button, fieldClass } from '../shared/parts.tsx';
import { refuseFile, toMediaName } from './media-model.ts';

interface MediaFieldProps {
  readonly id: string;
  readonly name: string;
  readonly value: string;
  readonly onChange: (reference: string) => void;
}

interface UploadProgress {
  readonly file: File;
  readonly share: number;
}

/** A local file or a reference to an existing one; a chosen file is uploaded to the project's media. */
export function MediaField({ id, name, value, onChange }: MediaFieldProps): ReactElement {
  const stop = useRef(new AbortController());
  const [progress, setProgress] = useState<UploadProgress | null>(null);
  const limit = useQuery(limitsQuery()).data?.media_bytes ?? null;
  const upload = useMutation({
    mutationFn: async (file: File) => {
      const refused = refuseFile(file, limit);
      if (refused !== null) throw new Error(refused);
      stop.current = new AbortController();
      const onProgress = (share: number): void => setProgress({ file, share });
      onProgress(0);
      return uploadMedia({ file, name: toMediaName(file.name), onProgress, signal: stop.current.signal });
    },
    onSuccess: ({ reference }) => onChange(reference),
    onSettled: () => setProgress(null),
  });
  useEffect(() => () => stop.current.abort(), []);
  const isGivenUp = upload.error?.name === 'AbortError';
  return (
    <div className="flex flex-col gap-1.5">
      <div className="flex flex-wrap items-center gap-2">
        <input
          id={id}
          className={`${fieldClass} min-w-0 flex-1`}
          placeholder="media://"
          value={value}
          onChange={({ target }) => onChange(target.value)}
        />
        {progress === null ? (
          <FileButton label={`A file for ${name}`} onFile={upload.mutate}>
            Choose a file
          </FileButton>
        ) : (
          <Button icon="x" onClick={() => stop.current.abort()}>
            Give up
          </Button>
        )}
      </div>
      {progress === null ? null : (
        <div role="status" className="flex items-center gap-2 text-xs text-muted">
          <progress aria-label={`Upload of ${progress.file.name}`} max={1} value={progress.share} />
          {progress.file.name}, {formatBytes(progress.file.size)}, {Math.floor(progress.share * 100)} %
        </div>
      )}
      {upload.error === null || isGivenUp ? null : (
        <p role="alert" className="text-xs text-failed">
          {upload.error.message}
        </p>
      )}
      {upload.data?.reference === value ? (
        <p className="text-xs text-muted">
          {formatBytes(upload.data.size)}, {upload.data.content_type}
        </p>
      ) : null}
      {isMedia(value) ? <MediaView reference={value} /> : null}
    </div>
  );
}
