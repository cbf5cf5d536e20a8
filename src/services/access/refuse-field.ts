import { AppError } from '../../errors/app-error.ts';

/** `request_invalid` about one field of a body. */
export function refuseField(pointer: string, message: string): AppError {
  return new AppError('request_invalid', message, { errors: [{ pointer, code: 'invalid_value', message }] });
}
