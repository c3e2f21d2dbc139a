// words.cc - the commonest words of a text, as a C++ program of every day finds them
#include <algorithm>
#include <cctype>
#include <ctime>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <unordered_map>
#include <vector>

static std::vector<std::string> split(const std::string &text)
{
	std::istringstream in(text);
	std::vector<std::string> words;
	std::string word;

	while (in >> word) {
		std::transform(word.begin(), word.end(), word.begin(), ::tolower);
		words.push_back(word);
	}
	return words;
}

static size_t count(const std::vector<std::string> &words)
{
	std::map<std::string, int> sorted;
	std::unordered_map<std::string, int> hashed;

	for (const auto &word : words) {
		sorted[word]++;
		hashed[word]++;
	}
	std::vector<std::pair<std::string, int>> all(hashed.begin(), hashed.end());
	std::sort(all.begin(), all.end(),
		  [](const auto &a, const auto &b) { return a.second > b.second || (a.second == b.second && a.first < b.first); });
	return all.size() + sorted.size();
}

int main(int argc, char **argv)
{
	std::ifstream file(argc > 2 ? argv[2] : "");
	std::stringstream text;
	size_t found = 0;

	if (argc < 3)
		return 2;
	text << file.rdbuf();
	while ((double)clock() / CLOCKS_PER_SEC < std::stod(argv[1]))
		found += count(split(text.str().substr(0, 1 << 20)));
	std::cout << found << '\n';
	return 0;
}
