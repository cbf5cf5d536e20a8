/** The same amount of text in every request and every answer. */
export const requestText = 'router '.repeat(28).padEnd(200, '.');
export const answerText = 'answer '.repeat(28).padEnd(200, '.');
/** The pieces in which a stream brings the answer. */
export const answerPieces: readonly string[] = answerText.match(/.{10}/g) ?? [];
