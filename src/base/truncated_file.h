/* truncated_file.h - mapped files that become shorter while they are read */
#ifndef PROFIL_BASE_TRUNCATED_FILE_H
#define PROFIL_BASE_TRUNCATED_FILE_H

/*
 * Makes pages of a mapped file beyond its end read as zeroes, in the whole process, until exec.
 * Otherwise the owner of a profiled library could end this process by truncating the file, which
 * causes SIGBUS.
 */
void truncated_file_reads_as_zeroes(void);

#endif
