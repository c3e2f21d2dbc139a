/* trusted_path.h - says whether root and this user alone decide what a path leads to */
#ifndef PROFIL_SYMBOLS_PROC_TRUSTED_PATH_H
#define PROFIL_SYMBOLS_PROC_TRUSTED_PATH_H

enum path_trust {
	PATH_TRUSTED,	/* a file of root or this user */
	PATH_NOTHING,	/* there is none, and no other user could make one */
	PATH_UNTRUSTED, /* another user could have made it, or could replace it later */
};

/*
 * Follows the absolute @path from the root. Each folder and symbolic link on the way, and the file,
 * must be such that no other user can change them: then a library that opens @path later by itself
 * gets the same file. Can wait for a file system that does not answer.
 */
enum path_trust path_trust(const char *path);

#endif
