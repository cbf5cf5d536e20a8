import { z } from 'zod';
import { type MediaPath, parseMediaReference } from '../../contracts/media.ts';

/** A `media://<job_id>/<file>` string for input and output schemas; shown in the spec as a pattern. */
export const MediaReference = z
  .string()
  .regex(/^media:\/\/[A-Za-z0-9._-]+(\/[A-Za-z0-9._-]+){1,7}$/, {
    error: 'expected media://<job_id>/<file>',
  })
  .refine((text) => parseMediaReference(text) !== null, {
    error: 'a segment is 1 to 128 letters, digits, dots, _ or -, and not . or ..',
  });

/** @throws Error when the text is no media reference */
export function readReference(text: string): MediaPath {
  const path = parseMediaReference(text);
  if (path === null)
    throw new Error(`${JSON.stringify(text)} is not a media reference: media://<job_id>/<file>`);
  return path;
}
