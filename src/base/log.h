/* log.h - messages to stderr, with priorities for the journal */
#ifndef PROFIL_BASE_LOG_H
#define PROFIL_BASE_LOG_H

/* syslog's levels; written as a prefix only if stderr is the journal. */
enum log_level {
	LOG_LEVEL_ERR = 3,
	LOG_LEVEL_WARNING = 4,
	LOG_LEVEL_NOTICE = 5,
	LOG_LEVEL_INFO = 6
};

/* Drops messages less urgent than @level. */
void log_limit(enum log_level level);

/* The program's name, a prefix of every line if stderr is not the journal. */
void log_open(const char *name);

void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define log_err(...) log_line(LOG_LEVEL_ERR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_notice(...) log_line(LOG_LEVEL_NOTICE, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)

#endif
