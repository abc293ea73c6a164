/** Whether a drop or a paste carries files. */
export const carriesFiles = (data: DataTransfer | null): boolean =>
  data !== null && ([...data.types].includes('Files') || data.files.length > 0);
