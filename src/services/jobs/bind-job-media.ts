/**
 * In a job, `media://job/<file>` stands for the job's own namespace, whose id the author cannot know yet. It is
 * replaced once, when the job is created; everything later sees `media://<job_id>/<file>`.
 */
import type { Json, JsonObject } from '../../contracts/primitives.ts';

/** What stands in a reference for the id of the job that it is in. */
export const ownNamespace = 'job';

const own = `media://${ownNamespace}/`;

export function bindJobMedia(job: JsonObject, jobId: string): JsonObject {
  return bind(job, jobId) as JsonObject;
}

function bind(value: Json, jobId: string): Json {
  if (typeof value === 'string') return bindText(value, jobId);
  if (Array.isArray(value)) return value.map((item) => bind(item as Json, jobId));
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, item]) => [bindText(key, jobId), bind(item as Json, jobId)]),
  );
}

/** In the middle of a text too, and in a key. */
function bindText(text: string, jobId: string): string {
  return text.replaceAll(own, `media://${jobId}/`);
}
