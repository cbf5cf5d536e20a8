/**
 * Uploads a local file to the project's media. It goes into the namespace of a new job, because a run's own job exists
 * only with the run. `fetch` reports no upload progress, so this uses XMLHttpRequest.
 */
import type { MediaObject } from '@capstan/core/contracts/media';
import { askPlainly, headersOfPage, unreachable } from './client.ts';
import { AnswerError, toProblem } from './problem-error.ts';

interface MediaUpload {
  readonly file: File;
  /** Path in the namespace of the job. */
  readonly name: string;
  /** From 0 to 1. */
  readonly onProgress: (share: number) => void;
  readonly signal: AbortSignal;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

function send(path: string, { file, onProgress, signal }: MediaUpload): Promise<MediaObject> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('PUT', path);
    for (const [name, value] of Object.entries(headersOfPage())) request.setRequestHeader(name, value);
    if (file.type === '') request.setRequestHeader('content-type', 'application/octet-stream');
    request.upload.onprogress = ({ loaded, total }) => onProgress(total === 0 ? 1 : loaded / total);
    request.onload = () => {
      const answer = parse(request.responseText);
      if (request.status < 300) resolve(answer as MediaObject);
      else reject(toProblem(request.status, answer));
    };
    request.onerror = () => reject(new AnswerError(0, unreachable));
    request.onabort = () => reject(new DOMException('the upload was given up', 'AbortError'));
    signal.addEventListener('abort', () => request.abort(), { once: true });
    request.send(file);
  });
}

/** @throws AnswerError */
export async function uploadMedia(upload: MediaUpload): Promise<MediaObject> {
  const { job_id } = await askPlainly<{ readonly job_id: string }>('/v1/jobs', {
    method: 'POST',
    body: { job: {} },
  });
  return send(`/v1/media/${job_id}/${upload.name}`, upload);
}
