/** In which language a definition is written. */
export type SourceFormat = 'json' | 'yaml';

/** By media type; without one, or with a general one, by the first character: `{` opens JSON. */
export function detectFormat(text: string, contentType: string | null): SourceFormat {
  const mediaType = contentType?.split(';')[0]?.trim().toLowerCase() ?? '';
  if (mediaType.endsWith('json')) return 'json';
  if (mediaType.endsWith('yaml')) return 'yaml';
  return text.trimStart().startsWith('{') ? 'json' : 'yaml';
}
