// The version, replaced by the build with package.json's.
declare const REEVE_VERSION: string | undefined;

export const version: string = typeof REEVE_VERSION === 'string' ? REEVE_VERSION : '0.0.0-source';
