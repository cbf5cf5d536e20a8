import { AppError } from '../../errors/app-error.ts';

/** Of a span of time that ends before it begins. */
export function refuseSpan(since: Date, until: Date): AppError {
  const message = `since is ${since.toISOString()}, which is not before until, ${until.toISOString()}`;
  return new AppError('request_invalid', message, {
    errors: [{ pointer: '/query/since', code: 'invalid_value', message }],
  });
}
