/** @param status of a request for a file; null: it was not answered */
export function explainMissing(status: number | null): string {
  if (status === null) return 'The server cannot be reached.';
  if (status === 404 || status === 410) {
    return 'The file does not exist: it was never stored, or it has been deleted.';
  }
  if (status === 403) return 'You may not read this file.';
  if (status >= 400) return `The server refuses the file (status ${status}).`;
  return 'This browser cannot show the file. Save it instead.';
}
